"""Second routes to what the accountants compute, by other means and without their code."""

import math

import mpmath as mp
import numpy as np


def densities(u: np.ndarray, q: float, swing: float, change: float, sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """log densities of (1−q)N(0)+qN(s) and (1−q)N(0)+qN(s−c) at σ·u, noise scaled to 1."""

    def log_mixture(mean: float) -> np.ndarray:
        with np.errstate(divide="ignore"):
            parts = np.logaddexp(np.log1p(-q) - 0.5 * u * u, math.log(q) - 0.5 * (u - mean / sigma) ** 2)
        return parts - 0.5 * math.log(2 * math.pi)

    return log_mixture(swing), log_mixture(swing - change)


def inverted(epsilon: float, q: float, swing: float, change: float, sigma: float, steps: int, *, swap: bool) -> float:
    """δ(ε) of T steps by inverting the Laplace transform: ∫ M(τ+iω)^T e^{−(τ+iω)ε} / ((τ+iω)(τ+1+iω)) dω / 2π.

    M(t) = E[e^{tL}] is a plain sum over outcomes; no lattice of losses is involved.
    """
    u = np.linspace(min(0, (swing - change) / sigma) - 14, max(swing, 0) / sigma + 14, 6001)
    a, b = densities(u, q, swing, change, sigma)
    a, b = (b, a) if swap else (a, b)
    loss, log_mass = a - b, a + math.log(u[1] - u[0])

    def exponent(tau: float) -> float:
        powers = log_mass + tau * loss
        top = powers.max()
        return steps * (top + math.log(np.exp(powers - top).sum())) - tau * epsilon - math.log(tau * (tau + 1))

    taus = np.geomspace(1e-3, 1e6, 400)
    tau = float(taus[int(np.argmin([exponent(float(t)) for t in taus]))])
    powers = log_mass + tau * loss
    top = powers.max()
    mass = np.exp(powers - top)
    total = mass.sum()
    mean = float(mass @ loss / total)
    spread = math.sqrt(steps * float(mass @ (loss - mean) ** 2 / total))
    step = 2 * math.pi / (40 * spread + 40 / tau)
    result, start = 0.0, 0
    while True:
        omega = step * (start + np.arange(200))
        transform = (mass / total) @ np.exp(1j * np.multiply.outer(loss - mean, omega))
        phase = np.exp(1j * omega * (steps * mean - epsilon))
        values = (transform**steps * phase / ((tau + 1j * omega) * (tau + 1 + 1j * omega))).real
        values[0] *= 0.5 if start == 0 else 1
        result += float(values.sum())
        start += 200
        if np.abs(transform[-1]) ** steps < 1e-9 / steps or start > 20000:
            break
    if start > 20000:
        raise RuntimeError("the transform decays too slowly for this oracle")
    return math.exp(steps * (top + math.log(total)) - tau * epsilon) * result * step / math.pi


def one_step(epsilon: float, q: float, swing: float, change: float, sigma: float) -> mp.mpf:
    """δ(ε) of one step of (A, B), exactly: A − e^ε·B on the half-line where that is positive (one sign change)."""
    with mp.workdps(60):
        q, s, c, sd, gamma = mp.mpf(q), mp.mpf(swing), mp.mpf(change), mp.mpf(sigma), mp.exp(mp.mpf(epsilon))

        def log_ratio(z: mp.mpf) -> mp.mpf:
            first = (1 - q) + q * mp.exp((s * z - s * s / 2) / sd**2)
            b = s - c
            return mp.log(first) - mp.log((1 - q) + q * mp.exp((b * z - b * b / 2) / sd**2)) - mp.mpf(epsilon)

        low, high = -60 * sd - 1, s + 60 * sd + sd * sd * 20
        if log_ratio(high) <= 0:
            return mp.mpf(0)
        for _ in range(400):
            middle = (low + high) / 2
            low, high = (low, middle) if log_ratio(middle) > 0 else (middle, high)
        tail = [mp.ncdf((mean - high) / sd) for mean in (0, s, s - c)]
        return (1 - q) * (1 - gamma) * tail[0] + q * tail[1] - gamma * q * tail[2]


def gaussian(epsilon: float, mu: mp.mpf) -> mp.mpf:
    """δ(ε) of the Gaussian mechanism to fifty digits."""
    with mp.workdps(50):
        e, mu = mp.mpf(epsilon), mp.mpf(mu)
        return mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu)


def revealed(epsilon: float, q: float, sigma: float, steps: int) -> mp.mpf:
    """The mixture over Bin(T, q) of Gaussian curves, term by term."""
    with mp.workdps(50):
        p = mp.mpf(q)
        return mp.fsum(
            mp.binomial(steps, j) * p**j * (1 - p) ** (steps - j) * gaussian(epsilon, 2 * mp.sqrt(j) / mp.mpf(sigma))
            for j in range(1, steps + 1)
        )


def renyi(order: float, q: float, sigma: float) -> mp.mpf:
    """D_α of the printed pair by adaptive quadrature."""
    with mp.workdps(20):
        a, q, s = mp.mpf(order), mp.mpf(q), mp.mpf(sigma)

        def mixture(z: mp.mpf, mean: int) -> mp.mpf:
            return q * mp.npdf(z, mean, s) + (1 - q) * mp.npdf(z, 0, s)

        points = [-1 - 20 * s, -1, 0, 1, a, 2 * a - 1, 2 * a + 20 * s]
        total = mp.quad(lambda z: mixture(z, 1) ** a * mixture(z, -1) ** (1 - a), sorted(set(points)))
        return mp.log(total) / (a - 1)
