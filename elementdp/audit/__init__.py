"""Attacking mechanisms: exact enumeration where outcomes are finite, confident lower bounds on ε where they are not."""
