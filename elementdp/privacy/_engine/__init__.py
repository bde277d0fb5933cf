"""How the accountant does it: domination, adversaries, pairs, cells, lattice, fourier, transform, composed."""
