"""Element-level differential privacy: the executable companion to Asi, Duchi and Javidbakht's paper."""

__version__ = "0.1.0"
