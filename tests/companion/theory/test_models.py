"""The aProx models: conditions (C.i)-(C.iii), the update as a minimiser, projected SGD as a special case."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from elementdp.companion.theory import Logistic, MarginLoss, Model, PseudoHuber, aprox, model_value

LOSSES: list[MarginLoss] = [Logistic(), PseudoHuber(), PseudoHuber(0.3)]
reals = st.floats(-6, 6)
quick = settings(max_examples=60, deadline=None, derandomize=True)


def label(loss: MarginLoss, y: float) -> np.ndarray:
    return np.asarray(np.sign(y) or 1.0) if isinstance(loss, Logistic) else np.asarray(y)


@pytest.mark.parametrize("loss", LOSSES)
@quick
@given(s=reals, y=reals)
def test_derivatives_match_finite_differences(loss: MarginLoss, s: float, y: float) -> None:
    h, at, lab = 1e-4, np.asarray(s), label(loss, y)
    slope = (loss.value(at + h, lab) - loss.value(at - h, lab)) / (2 * h)
    curve = (loss.slope(at + h, lab) - loss.slope(at - h, lab)) / (2 * h)
    assert slope == pytest.approx(float(loss.slope(at, lab)), abs=1e-6)
    assert curve == pytest.approx(float(loss.curve(at, lab)), abs=1e-5)
    assert abs(slope) <= loss.lipschitz


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("model", list(Model))
@quick
@given(s0=reals, s=reals, t=reals, mix=st.floats(0, 1), y=reals)
def test_conditions_on_models(
    loss: MarginLoss, model: Model, s0: float, s: float, t: float, mix: float, y: float
) -> None:
    lab, at = label(loss, y), np.asarray(s0)

    def value(point: float) -> float:
        return float(model_value(model, loss, np.asarray(point), at, lab))

    between = value(mix * s + (1 - mix) * t)
    assert between <= mix * value(s) + (1 - mix) * value(t) + 1e-9  # (C.i) convex
    assert value(s0) == pytest.approx(float(loss.value(at, lab)), abs=1e-12)  # (C.ii) locally accurate
    assert value(s) <= float(loss.value(np.asarray(s), lab)) + 1e-9  # (C.iii) lower bound


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("model", list(Model))
@pytest.mark.parametrize("radius", [np.inf, 1.0])
@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    theta=st.tuples(st.floats(-0.7, 0.7), st.floats(-0.7, 0.7)),
    x=st.tuples(reals, reals),
    y=reals,
    a=st.floats(0.01, 3),
)
def test_update_minimises_model_plus_quadratic(
    loss: MarginLoss,
    model: Model,
    radius: float,
    theta: tuple[float, float],
    x: tuple[float, float],
    y: float,
    a: float,
) -> None:
    """No feasible point of an independent search (many starts, polar coordinates for the ball) does better."""
    at, design, lab = np.array(theta), np.array(x), label(loss, y)

    def objective(point: np.ndarray) -> float:
        fit = model_value(model, loss, np.asarray(design @ point), np.asarray(design @ at), lab)
        return float(fit) + float((point - at) @ (point - at)) / (2 * a)

    found = aprox(model, loss, at[:, None], design[:, None], np.array([float(lab)]), a, radius)[:, 0]
    assert np.linalg.norm(found) <= radius + 1e-9

    def inside(point: np.ndarray) -> np.ndarray:
        return point * min(1.0, radius / max(float(np.linalg.norm(point)), 1e-300))

    search = minimize(
        lambda v: objective(inside(v)), found, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}
    )
    other = minimize(lambda v: objective(inside(v)), inside(at), method="Nelder-Mead")
    best = min(search.fun, other.fun)
    assert objective(found) <= best + 1e-7 * (1 + abs(best))


@quick
@given(theta=st.tuples(reals, reals), x=st.tuples(reals, reals), y=st.sampled_from([-1.0, 1.0]), a=st.floats(0.01, 3))
def test_first_order_model_is_projected_gradient(
    theta: tuple[float, float], x: tuple[float, float], y: float, a: float
) -> None:
    at, design = np.array(theta), np.array(x)
    gradient = -y * design / (1 + np.exp(y * (design @ at)))
    step = at - a * gradient
    projected = step / max(1.0, float(np.linalg.norm(step)) / 2.0)
    got = aprox(Model.FIRST_ORDER, Logistic(), at[:, None], design[:, None], np.array([y]), a, 2.0)[:, 0]
    np.testing.assert_allclose(got, projected, atol=1e-12)


@quick
@given(theta=st.tuples(reals, reals), x=st.tuples(reals, reals), y=st.sampled_from([-1.0, 1.0]), a=st.floats(0.01, 50))
def test_truncated_step_never_passes_the_floor(
    theta: tuple[float, float], x: tuple[float, float], y: float, a: float
) -> None:
    """The closed form θ - min(α, ℓ/|∇ℓ|²)∇ℓ of the truncated model (infimum 0)."""
    at, design = np.array(theta), np.array(x)
    gradient = -y * design / (1 + np.exp(y * (design @ at)))
    square = float(gradient @ gradient)
    value = float(np.logaddexp(0, -y * (design @ at)))
    expected = at - min(a, value / square) * gradient if square > 1e-12 else None
    got = aprox(Model.TRUNCATED, Logistic(), at[:, None], design[:, None], np.array([y]), a)[:, 0]
    if expected is not None:
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)


def test_pseudo_huber_refuses_no_width() -> None:
    with pytest.raises(ValueError, match="width"):
        PseudoHuber(0.0)


def test_the_proximal_slope_does_not_go_back_and_forth() -> None:
    """Newton's method alone cycles here: t = φ'(3 - 36t) for the logistic loss has its root near 0.09."""
    found = aprox(
        Model.PROXIMAL, Logistic(), np.array([[0.0], [-0.5]]), np.array([[0.0], [-6.0]]), np.array([-1.0]), 1.0
    )[:, 0]
    at = float(found[1])
    gradient = Logistic().slope(np.array(-6.0 * at), np.array(-1.0)) * -6.0 + (at + 0.5)
    assert abs(float(gradient)) < 1e-9
