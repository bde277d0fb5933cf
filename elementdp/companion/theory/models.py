"""The aProx family of the appendix: models of a loss at a point, and the update that minimises them.

Every model here is a convex scalar function h of the response s = xᵀθ, so that the update
argmin over Θ of h(xᵀθ) + |θ - θ₀|²/(2α) is θ₀ - αtx (shrunk into Θ) with one unknown slope t ∈ ∂h.
Vectors are stored component first, (d, ...), so that all replications of one coordinate are contiguous.
"""

from enum import StrEnum

import numpy as np

from elementdp.companion.theory.losses import FloatArray, MarginLoss

_BISECTIONS = 80


class Model(StrEnum):
    """Which model of the loss a step minimises; each meets (C.i)-(C.iii) for a convex loss."""

    FIRST_ORDER = "first-order"  # the tangent: projected stochastic gradient
    TRUNCATED = "truncated"  # the tangent, cut off at the loss's infimum
    PROXIMAL = "proximal"  # the loss itself: the stochastic proximal point method


def model_value(model: Model, loss: MarginLoss, s: FloatArray, s0: FloatArray, y: FloatArray) -> FloatArray:
    """ℓ_θ₀(θ; x) as a function of s = xᵀθ, for a model built at s0 = xᵀθ₀."""
    if model is Model.PROXIMAL:
        return loss.value(s, y)
    tangent = loss.value(s0, y) + loss.slope(s0, y) * (s - s0)
    return np.maximum(tangent, loss.floor) if model is Model.TRUNCATED else tangent


def aprox(
    model: Model,
    loss: MarginLoss,
    theta: FloatArray,
    x: FloatArray,
    y: FloatArray,
    alpha: FloatArray | float,
    radius: float = np.inf,
) -> FloatArray:
    """aprox_α(θ₀; x): the minimiser over Θ = {|θ| ≤ radius} of the model plus |θ - θ₀|²/(2α)."""
    s0 = (x * theta).sum(axis=0)
    square = (x * x).sum(axis=0)
    slope = _slope(model, loss, s0, alpha * square, s0, y)
    free = theta - (alpha * slope) * x
    if not np.isfinite(radius):
        return np.asarray(free)
    norm = np.sqrt((free * free).sum(axis=0))
    if model is Model.FIRST_ORDER:  # the step is a projection: no search for the multiplier
        return np.asarray(free * np.minimum(1.0, radius / np.maximum(norm, radius)))
    if not np.any(norm > radius):
        return np.asarray(free)
    # With multiplier ν ≥ 0 of |θ|² ≤ radius² the minimiser is μ(θ₀ - αtx), μ = 1/(1+αν); its norm grows with μ.
    low, high = np.zeros_like(norm), np.ones_like(norm)
    for _ in range(_BISECTIONS):
        mu = (low + high) / 2
        trial = mu * (theta - alpha * _slope(model, loss, mu * s0, mu * alpha * square, s0, y) * x)
        outside = (trial * trial).sum(axis=0) > radius**2
        low, high = np.where(outside, low, mu), np.where(outside, mu, high)
    shrunk = low * (theta - alpha * _slope(model, loss, low * s0, low * alpha * square, s0, y) * x)
    return np.where(norm > radius, shrunk, free)


def _slope(model: Model, loss: MarginLoss, a: FloatArray, b: FloatArray, s0: FloatArray, y: FloatArray) -> FloatArray:
    """The slope t ∈ ∂h(a - bt) of the model h built at s0."""
    if model is Model.FIRST_ORDER:
        return loss.slope(s0, y)
    if model is Model.PROXIMAL:
        return _proximal_slope(loss, a, b, y)
    tangent = loss.slope(s0, y)
    # The step stops at the kink, where the tangent meets the floor: t lies between 0 and the tangent's slope.
    excess = loss.value(s0, y) + tangent * (a - s0) - loss.floor
    room = excess / np.maximum(b * tangent**2, np.finfo(float).tiny)
    return np.asarray(tangent * np.clip(room, 0.0, 1.0))


def _proximal_slope(loss: MarginLoss, a: FloatArray, b: FloatArray, y: FloatArray) -> FloatArray:
    """The root of t = φ'(a - bt): Newton's method kept inside the bracket [0, φ'(a)].

    A step of Newton's that does not halve the one before gives way to bisection: where the slope bends sharply Newton's
    method alone can go back and forth between two points for ever.
    """
    edge = loss.slope(a, y)
    low, high = np.minimum(edge, 0.0), np.maximum(edge, 0.0)
    t = edge / (1 + b * loss.curve(a, y))
    step = high - low
    for _ in range(_BISECTIONS):
        s = a - b * t
        gap = t - loss.slope(s, y)
        if np.all(np.abs(gap) <= 1e-13):
            break
        low, high = np.where(gap < 0, t, low), np.where(gap > 0, t, high)
        newton = t - gap / (1 + b * loss.curve(s, y))
        safe = (newton >= low) & (newton <= high) & (np.abs(newton - t) <= step / 2)
        moved = np.where(safe, newton, (low + high) / 2)
        step, t = np.abs(moved - t), moved
    return np.asarray(t)
