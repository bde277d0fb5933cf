"""The live figures in headless Chromium: their controls are driven, and their numbers compared with the package's."""

import json
import math
import os
import re
import shlex
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import matplotlib.pyplot as plt
import numpy as np
import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser, Page
from support.small_books import ROOT

from elementdp.audit.guessing import epsilon_from_guesses
from elementdp.audit.mixtures import renyi, user_sampled
from elementdp.audit.sampled import claimed_odds, identity_odds
from elementdp.cli import cli
from elementdp.companion.report.figures import figure_html
from elementdp.companion.report.lessons import (
    PARTITIONS,
    show_audit_game,
    show_counterexample,
    show_distances,
    show_histogram_error,
    zipf_errors,
)
from elementdp.companion.report.live import show_calculator, show_live
from elementdp.companion.theory.exhibits.sampling import two_densities
from elementdp.elements import user_distance
from elementdp.privacy import Sampler, SubsampledGaussian, Unit, account, calibrate, claimed, printed_renyi

pytestmark = pytest.mark.browser
STATIC = ROOT / "book" / "_static"
SCRIPTS = ("live-accountant.js", "live-figures.js", "live-lessons.js")
SETTINGS = int(os.environ.get("ELEMENTDP_LIVE_SETTINGS", "40"))  # 500 of them take some minutes
SMALLEST, MOST = 1e-3, 1e3  # the page shows an ε outside as "at most" the one and "over" the other
Opened = Callable[..., Page]


@pytest.fixture
def live(browser: Browser, tmp_path: Path) -> Iterator[Opened]:
    """Open a page with one live figure; it must log no error and load nothing but the book's own files."""
    problems: list[str] = []
    contexts = []

    def opened(
        kind: str, hash_: str = "", *, markup: str = "", script: bool = True, width: int = 1280, **start: object
    ) -> Page:
        still = figure_html(
            plt.figure(figsize=(6, 3)), alt="A static figure that stands for the live one.", name="still"
        )
        holder = f'<div class="edp-live" data-live="{kind}" data-start="{urlencode(start)}">{still}</div>'
        loads = "".join(f'<script defer src="{(STATIC / name).as_uri()}"></script>' for name in SCRIPTS)
        sheets = "".join(
            f'<link rel="stylesheet" href="{(STATIC / name).as_uri()}">' for name in ("elementdp.css", "live.css")
        )
        path = tmp_path / "page.html"
        path.write_text(
            f'<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8">{sheets}{loads}</head>'
            f"<body><p>Before</p>{markup or holder}<p>After</p></body></html>"
        )
        context = browser.new_context(viewport={"width": width, "height": 844}, java_script_enabled=script)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: None if request.url.startswith("file:") else problems.append(request.url))
        page.goto(path.as_uri() + hash_)
        return page

    yield opened
    plt.close("all")
    for context in contexts:
        context.close()
    assert not problems


@pytest.fixture
def accountant(browser: Browser) -> Iterator[Page]:
    """A blank page with the accountant alone."""
    page = browser.new_page()
    page.add_script_tag(path=STATIC / SCRIPTS[0])
    yield page
    page.close()


def in_page(event: SubsampledGaussian) -> dict[str, Any]:
    """The run as the scripts know it."""
    return {
        "sampler": str(event.sampler),
        "unit": str(event.unit),
        "q": event.q,
        "sigma": event.sigma,
        "steps": event.steps,
        "elements": event.elements_per_user,
    }


def random_runs(count: int, box: dict[str, list[float]], seed: int) -> list[tuple[SubsampledGaussian, float]]:
    """Runs and δ, evenly in the logarithms over the box that the page states."""
    rng = np.random.default_rng(seed)

    def draw(name: str) -> float:
        low, high = box[name]
        return float(f"{math.exp(rng.uniform(math.log(low), math.log(high))):.3g}")

    runs = []
    for _ in range(count):
        unit = Unit.USER if rng.random() < 0.3 else Unit.ELEMENT
        elements = int(draw("elements")) if unit is Unit.USER or rng.random() < 0.7 else None
        size = elements if unit is Unit.USER and elements else 1
        sampler = (Sampler.POISSON_USERS, Sampler.FIXED_USERS, Sampler.POISSON_PAIRS)[rng.integers(3)]
        run = SubsampledGaussian(sampler, size * draw("sigma"), draw("q"), int(draw("steps")), unit, elements)
        runs.append((run, draw("delta")))
    return runs


def test_the_page_s_epsilon_is_a_bound_and_close(accountant: Page) -> None:
    runs = random_runs(SETTINGS, accountant.evaluate("elementdp.BOX"), seed=17)
    count = "([run, delta]) => [elementdp.account(run, delta), elementdp.claimed(run, delta)]"
    for run, delta in runs:
        found, printed = accountant.evaluate(count, [in_page(run), delta])
        assert printed == pytest.approx(claimed(run, delta), rel=2e-3), (run, delta)
        if found > MOST:
            continue
        band = account(run, delta)
        assert found >= band.low * (1 - 1e-9), (run, delta)
        assert found <= max(1.01 * band.up, SMALLEST), (run, delta)


@pytest.mark.parametrize("elements", [None, 1, 12])
@pytest.mark.parametrize("sampler", ["poisson-users", "fixed-users", "poisson-pairs"])
def test_the_page_s_noise_keeps_the_target(accountant: Page, sampler: str, elements: int | None) -> None:
    run, epsilon, delta = SubsampledGaussian(Sampler(sampler), 2.0, 0.02, 500, elements_per_user=elements), 1.5, 1e-6
    noise = "([run, epsilon, delta]) => elementdp.noise(elementdp.account, run, epsilon, delta)"
    sigma = accountant.evaluate(noise, [in_page(run), epsilon, delta])
    least = calibrate(run, epsilon, delta).sigma
    assert 0.999 * least <= sigma <= 1.01 * least


def fill(page: Page, label: str, text: str) -> None:
    page.get_by_label(label, exact=True).fill(text)


def settled(page: Page, kind: str = "answered") -> None:
    """Wait until the numbers belong to the last input."""
    page.wait_for_function(
        f"() => (({{ {kind}, turn }}) => {kind} === turn)(document.querySelector('.edp-live-box').dataset)"
    )


def answers(page: Page) -> list[list[str]]:
    settled(page)
    rows = page.locator(".edp-answer tbody tr")
    return [rows.nth(i).locator("td").all_inner_texts() for i in range(rows.count())]


def read(shown: str) -> float:
    return float(shown.replace(",", ""))


def test_the_calculator_answers(live: Opened) -> None:
    page = live("calculator")
    page.get_by_label("Sampled are").select_option("fixed-users")
    for label, text in (("Sampling rate q", "1/50"), ("Steps T", "2,000"), ("δ", "1e-6"), ("Elements per user", "5")):
        fill(page, label, text)
    fill(page, "Noise σ", "6")
    run = SubsampledGaussian(Sampler.FIXED_USERS, 6.0, 0.02, 2000, elements_per_user=5)
    pairs = SubsampledGaussian(Sampler.POISSON_PAIRS, 6.0, 0.02, 2000, elements_per_user=5)
    paper, true, paired = answers(page)
    printed = claimed(run, 1e-6)
    assert read(paper[0]) == pytest.approx(printed, rel=6e-3)
    for row, event in ((true, run), (paired, pairs)):
        band = account(event, 1e-6)
        assert band.low <= read(row[0]) <= 1.02 * band.up
        assert (
            calibrate(event, printed, 1e-6).sigma * 0.999
            <= read(row[1])
            <= 1.02 * calibrate(event, printed, 1e-6).sigma
        )
    settled(page, "drawn")
    assert page.locator(".edp-plot path").count() == 3


@pytest.mark.parametrize("given", ["sigma", "epsilon"])
def test_the_copied_lines_answer_the_same(live: Opened, given: str) -> None:
    page = live("calculator", q=0.03, steps=40, delta=1e-5, sigma=3, epsilon=2, elements=4, given=given)
    shown = [read(text) for text in answers(page)[1]]
    shell, python = page.locator(".edp-code code").all_inner_texts()
    result = CliRunner().invoke(cli, [*shlex.split(shell)[1:], "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    names: dict[str, Any] = {}
    first, last = python.splitlines()
    exec(first, names)
    value = eval(last, names)
    if given == "sigma":
        assert found["up"] == value
        assert found["low"] <= shown[0] <= 1.02 * value
    else:
        assert found["sigma"] == value
        assert 0.999 * value <= shown[1] <= 1.02 * value


def test_a_link_carries_the_inputs(live: Opened) -> None:
    page = live("calculator", q=0.5)
    fill(page, "Steps T", "77")
    page.get_by_label("Protected is").select_option("user")
    fill(page, "Elements per user", "3")
    first = answers(page)
    link = page.evaluate("location.hash")
    assert {"q=0.5", "steps=77", "elements=3", "unit=user"} <= set(link[1:].split("&"))
    assert answers(live("calculator", link)) == first


def test_outside_the_box_the_command_is_shown_instead(live: Opened) -> None:
    page = live("calculator")
    fill(page, "Sampling rate q", "1e-6")
    settled(page)
    assert "q from 0.0001 to 1" in page.locator(".edp-answer").inner_text()
    assert page.locator(".edp-answer td").count() == 0
    assert "-q 1e-6 " in page.locator(".edp-code code").first.inner_text()
    page.get_by_label("Protected is").select_option("user")
    fill(page, "Sampling rate q", "0.1")
    settled(page)
    assert "any number" in page.locator(".edp-answer").inner_text()


def test_what_is_no_number_is_marked_and_changes_nothing(live: Opened) -> None:
    page = live("calculator")
    before = answers(page)
    fill(page, "Noise σ", "four")
    assert page.get_by_label("Noise σ", exact=True).get_attribute("aria-invalid") == "true"
    assert answers(page) == before


def test_keyboard_and_screen_reader(live: Opened) -> None:
    page = live("calculator")
    before = answers(page)
    page.get_by_label("Noise σ, slider").focus()
    page.keyboard.press("ArrowRight")
    assert read(answers(page)[1][0]) < read(before[1][0])
    unnamed = """() => [...document.querySelectorAll('.edp-live-box :is(input, select, textarea)')]
        .filter((e) => !e.labels.length && !e.getAttribute('aria-label')).length"""
    assert page.evaluate(unnamed) == 0
    assert page.locator(".edp-answer").get_attribute("role") == "status"
    outline = "() => getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"
    assert page.locator(".edp-plot svg").get_attribute("aria-label")


KINDS = ("calculator", "counterexample", "densities", "distances", "histogram", "audit")


@pytest.mark.parametrize("kind", KINDS)
def test_without_javascript_the_static_figure_is_there(live: Opened, kind: str) -> None:
    page = live(kind, script=False)
    box = page.locator("#still svg").bounding_box()
    assert box is not None and box["height"] > 100
    assert live(kind).locator("#still > svg").bounding_box() is None


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("kind", KINDS)
def test_the_text_below_does_not_move(live: Opened, kind: str, width: int) -> None:
    page = live(kind, width=width)
    if kind == "calculator":
        settled(page, "drawn")
    shifts = """() => new Promise((done) => new PerformanceObserver((list) => done(list.getEntries()
        .reduce((sum, entry) => sum + entry.value, 0))).observe({type: 'layout-shift', buffered: true}))"""
    page.evaluate("() => { document.body.prepend(document.createElement('hr')); }")  # so that there is one to report
    page.wait_for_timeout(50)
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(shifts) < 0.1


def told(page: Page) -> str:
    return page.locator(".edp-answer").inner_text()


def numbers(text: str) -> list[float]:
    """The numbers of a sentence, without the full stop at its end."""
    return [read(found) for found in re.findall(r"\d[\d,]*\.?\d*(?:e-?\d+)?", text)]


@pytest.mark.parametrize(("q", "odds", "elements"), [("1/2", "3", 2), ("0.2", "5/2", 3), ("1/3", "4", 30)])
def test_the_counterexample_counts_in_fractions(live: Opened, q: str, odds: str, elements: int) -> None:
    page = live("counterexample")
    fill(page, "Chance q of being drawn", q)
    fill(page, "Odds eᵋ of one answer", odds)
    fill(page, "Elements K", str(elements))
    printed = claimed_odds(Fraction(odds), Fraction(q))
    true = identity_odds(Fraction(odds), elements, Fraction(q))
    for exact in (printed, true):
        if exact.denominator < 1000:
            assert f" {exact}" in told(page)
        assert min(abs(number / float(exact) - 1) for number in numbers(told(page))) < 1e-3


@pytest.mark.parametrize(("r", "sigma", "q", "order"), [(9, 2, 0.3, 8), (0, 4, 0.01, 2), (3.5, 0.7, 0.2, 20)])
def test_the_densities_have_their_renyi_level(live: Opened, r: float, sigma: float, q: float, order: float) -> None:
    page = live("densities", r=r, sigma=sigma, q=q, order=order)
    *_, printed, _, found, times = numbers(told(page))
    level = renyi(user_sampled(q, sigma, r, 1), user_sampled(q, sigma, r, -1), order)
    assert printed == pytest.approx(printed_renyi(order, q, sigma), rel=6e-3)
    assert found == pytest.approx(level, rel=6e-3)
    assert times == pytest.approx(level / printed_renyi(order, q, sigma), rel=6e-3)


@pytest.mark.parametrize(
    ("one", "other"),
    [("yo bro yo", "yo yo bro"), ("yo bro", "bro yo"), ("a b c", ""), ("abc abd x", "abc abe x"), ("__proto__ a", "a")],
)
def test_the_distance_of_two_texts(live: Opened, one: str, other: str) -> None:
    page = live("distances", epsilon=0.5)
    fill(page, "One user says", one)
    fill(page, "The other says", other)
    for name, partition in PARTITIONS.items():
        page.get_by_label("An element is").select_option(label=name)
        distance = user_distance(one.split(), other.split(), partition)
        first, second, _ = page.locator(".edp-answer p").all_inner_texts()
        assert first == f"Distance {distance}"
        factor = numbers(second)[-1]
        assert math.exp(0.5 * distance) <= factor * (1 + 1e-9) <= 1.01 * math.exp(0.5 * distance)


def test_the_histogram_s_error_has_three_parts(live: Opened) -> None:
    page = live("histogram", rho=4, n=200, m=60, epsilon=2, seed=5)
    rho, *parts, total, best, least, private, paid = numbers(told(page))
    assert rho == 4
    assert parts == pytest.approx(zipf_errors(4, 200, 60, 2.0), rel=6e-3)
    assert total == pytest.approx(sum(parts), rel=6e-3)
    near = [sum(zipf_errors(best + step, 200, 60, 2.0)) for step in (-1, 0, 1)]
    assert near[1] == min(near) == pytest.approx(least, rel=6e-3)
    sampling, bias, noise = zipf_errors(private, 200, 60, 2.0)
    assert paid == pytest.approx(sampling + bias + noise / 0.9, rel=0.03)
    page.get_by_role("button", name="Choose ρ privately again").click()
    assert numbers(told(page))[-2] != private


def play(page: Page, times: int) -> tuple[int, int, float]:
    """Let the best rule guess: right guesses, guesses, and the ε they prove."""
    for _ in range(times):
        page.get_by_role("button", name="best rule").click()
    found = re.search(r"(\d+) of (\d+) guesses.*ε ≥ ([\d.]+);", told(page))
    assert found
    return int(found[1]), int(found[2]), float(found[3])


def test_the_audit_refutes_the_printed_claim_for_users_and_not_for_pairs(live: Opened) -> None:
    page = live("audit", q=0.1, odds=9, K=8, seed=3)
    printed = math.log(float(claimed_odds(Fraction(9), Fraction(1, 10))))
    right, guesses, proved = play(page, 1)
    assert guesses == 50
    assert epsilon_from_guesses(right, guesses) <= proved + 1e-2  # the best so far is kept
    right, guesses, proved = play(page, 5)
    assert guesses == 300
    assert printed < epsilon_from_guesses(right, guesses) <= proved + 1e-2
    assert proved <= math.log(9)
    assert "refuted" in told(page)
    page.get_by_label("Sampled are").select_option("pairs")
    right, guesses, proved = play(page, 6)
    assert guesses == 300
    assert proved <= printed
    assert epsilon_from_guesses(right, guesses) <= proved + 1e-2


def test_a_reader_guesses_by_hand(live: Opened) -> None:
    page = live("audit", seed=4)
    page.get_by_role("button", name="The secret is yes").click()
    assert re.search(r"The secret was (yes: right|no: wrong)\. [01] of 1 guesses", told(page))
    page.get_by_role("button", name="The secret is no").focus()
    page.keyboard.press("Enter")
    assert "of 2 guesses" in told(page)


SHOWN: dict[
    str, tuple[Callable[[], None], dict[str, str]]
] = {  # what a page calls, and inputs the live figure begins with
    "calculator": (
        lambda: show_calculator(
            SubsampledGaussian(Sampler.POISSON_USERS, 2.0, 0.05, 30, elements_per_user=3), 1e-5, target=2.0
        ),
        {"Steps T": "30", "δ": "1e-5", "Elements per user": "3", "Target ε": "2"},
    ),
    "counterexample": (lambda: show_counterexample(Fraction(3), Fraction(1, 2)), {"Odds eᵋ of one answer": "3"}),
    "densities": (
        lambda: show_live("densities", two_densities(), {"r": 4, "sigma": 2, "q": 0.3}),
        {"Other elements add r": "4", "Noise σ": "2"},
    ),
    "distances": (
        lambda: show_distances("a & b", '"c" a', epsilon=2.0),
        {"One user says": "a & b", "ε of one element": "2"},
    ),
    "histogram": (lambda: show_histogram_error(n=100, m=20, epsilon=1.0), {"Users n": "100", "Words per user m": "20"}),
    "audit": (
        lambda: show_audit_game(0.2, 4, 5, guesses=5, seed=0),
        {"Elements K": "5", "Chance q of being drawn": "0.2"},
    ),
}


@pytest.mark.parametrize("kind", SHOWN)
def test_what_a_page_shows_becomes_live(live: Opened, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    shown: list[str] = []
    monkeypatch.setattr("IPython.display.publish_display_data", lambda data, _: shown.append(data["text/html"]))
    call, inputs = SHOWN[kind]
    call()
    (markup,) = shown
    assert re.search(r'<svg role="img"[^>]* aria-label="[^"]{20,}"', markup)
    page = live(kind, markup=markup)
    assert page.locator(".edp-live-on").count() == 1
    for label, text in inputs.items():
        assert page.get_by_label(label, exact=True).input_value() == text


def test_the_scripts_are_small_and_load_nothing() -> None:
    texts = [(STATIC / name).read_text() for name in SCRIPTS]
    assert sum(len(text.encode()) for text in texts) <= 60_000
    for text in texts:
        assert not re.search(
            r"\bfetch\(|\bimport\(|^\s*(im|ex)port |XMLHttpRequest|https?://(?!www\.w3\.org)", text, re.MULTILINE
        )
