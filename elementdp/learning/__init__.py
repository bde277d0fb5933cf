"""Private training by elements: Algorithm 1 and the private iteration for torch models."""
