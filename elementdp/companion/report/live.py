"""Figures the reader can move: a static figure in a container that the book's scripts fill with a live one.

Readers without JavaScript see the static figure. The scripts are ``book/_static/live-*.js``; they compute in the page
what the package computes here, and the tests compare the two.
"""

import html
from collections.abc import Callable, Mapping
from dataclasses import replace
from urllib.parse import urlencode

import matplotlib.pyplot as plt
import numpy as np

from elementdp.companion.exhibit import Exhibit
from elementdp.companion.report.display import display_html
from elementdp.companion.report.figures import figure_html
from elementdp.companion.style import LOOKS, Look
from elementdp.errors import ArgumentError
from elementdp.privacy import Sampler, SubsampledGaussian, calibrate_as_printed, claimed, promise

RATES = np.geomspace(1e-4, 1, 9)
"""The sampling rates of the calculator's static figure."""


def show_live(kind: str, exhibit: Exhibit, start: Mapping[str, object]) -> None:
    """Show the figure of ``exhibit`` in the container of the live figure ``kind``, which begins with ``start``."""
    if exhibit.figure is None:
        raise ArgumentError("exhibit", exhibit.name, "with a figure, for readers without JavaScript")
    values = html.escape(urlencode({key: "any" if value is None else value for key, value in start.items()}))
    still = figure_html(exhibit.figure, exhibit.alt, exhibit.caption, name=exhibit.name)
    display_html(f'<div class="edp-live" data-live="{kind}" data-start="{values}">{still}</div>', plain=exhibit.alt)
    plt.close(exhibit.figure)


def show_calculator(event: SubsampledGaussian, delta: float, *, target: float | None = None) -> None:
    """The calculator of true ε. It begins with ``event``, or with the noise that the paper takes for ε = ``target``."""
    if target is not None:
        event = calibrate_as_printed(event, target, delta)
    pairs = replace(event, sampler=Sampler.POISSON_PAIRS)
    figure, axes = plt.subplots()
    lines: list[tuple[str, Look, Callable[[float], float]]] = [
        ("the paper prints", LOOKS["element, as printed"], lambda q: claimed(replace(event, q=q), delta)),
        (
            "true, sampled as chosen",
            LOOKS["element, users sampled"],
            lambda q: promise(replace(event, q=q), delta).epsilon,
        ),
        ("true, pairs sampled", LOOKS["element, pairs sampled"], lambda q: promise(replace(pairs, q=q), delta).epsilon),
    ]
    for label, look, epsilon in lines:
        axes.loglog(RATES, [epsilon(float(q)) for q in RATES], color=look.colour, ls=look.dash, label=label)
    axes.set(xlabel="sampling rate q", ylabel=f"ε at δ = {delta:.3g}")
    axes.legend()
    printed, promised = claimed(event, delta), promise(event, delta).epsilon
    elements = "any number of" if event.elements_per_user is None else f"at most {event.elements_per_user}"
    setting = f"{event.steps:,} steps, σ = {event.sigma:.3g}, δ = {delta:.3g}, users with {elements} elements"
    if target is None:
        noise: dict[str, object] = {"given": "sigma", "sigma": f"{event.sigma:.4g}"}
    else:
        noise = {"given": "epsilon", "epsilon": target}
    exhibit = Exhibit(
        name="live-calculator",
        figure=figure,
        alt=f"ε against the sampling rate for {setting}. At q = {event.q:g} the paper prints {printed:.3g} and the "
        f"true ε is at most {promised:.3g}.",
        caption=f"What the paper prints and what is true. It begins with {setting}, q = {event.q:g}.",
    )
    start = {
        "sampler": event.sampler,
        "unit": event.unit,
        "q": f"{event.q:g}",
        "steps": event.steps,
        "delta": f"{delta:.3g}",
        "elements": event.elements_per_user,
    }
    show_live("calculator", exhibit, {**start, **noise})
