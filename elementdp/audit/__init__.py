"""Attacking mechanisms: exact enumeration where outcomes are finite, confident lower bounds on ε where they are not."""

from elementdp.audit.attack import attack
from elementdp.audit.bounds import EmpiricalEpsilon, clopper_pearson, epsilon_from_rates

__all__ = ["EmpiricalEpsilon", "attack", "clopper_pearson", "epsilon_from_rates"]
