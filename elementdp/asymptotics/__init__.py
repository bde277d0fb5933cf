"""Noisy stochastic approximation on a fixed sample: Theorem 1, its lemmas, and its private form with elements."""
