"""Section 4.3 in small: noise, curves that resume, and sentences that follow the numbers."""

import math
from dataclasses import replace
from itertools import count

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from torch import nn

from elementdp.companion.experiments.images import (
    PHOTOS_LEGEND,
    Accounting,
    Compute,
    Hyperparameters,
    ImageTask,
    PhotosPage,
    PhotosPlan,
    RunResult,
    Schedule,
    Variant,
    advantages,
    at_rate,
    climb,
    event,
    from_row,
    ladders,
    largest_elements,
    last_layer,
    load_photos,
    noise_for,
    non_private,
    photos_sentences,
    photos_stand_in,
    rates_tried,
    recorded_results,
    reduced,
    results_of,
    run,
    study,
    to_row,
    true_epsilon,
    tuning,
)
from elementdp.companion.experiments.images.comparison import difference
from elementdp.companion.experiments.images.exhibits import legend_curves, paper_figure
from elementdp.companion.experiments.images.tasks import top
from elementdp.companion.experiments.recorded import recording
from elementdp.errors import ArgumentError, ElementdpError
from elementdp.privacy import Sampler, Unit, account, claimed

SCHEDULE = Schedule(images=10, q=0.1, steps=12)


def line(accounting=Accounting.PAIRS, unit=Unit.ELEMENT, epsilon=3.0, k=3, clusters=8, users=60):
    return Variant(accounting, unit, epsilon, k, clusters, users)


@pytest.fixture(scope="module")
def pool():
    return photos_stand_in(400, 200, classes=6, dimension=8)


@pytest.fixture(scope="module")
def task(pool):
    return last_layer(pool, images=10)


def test_the_legend_is_the_papers():
    assert len(PHOTOS_LEGEND) == len(set(PHOTOS_LEGEND)) == 16
    lines = PhotosPlan().variants()
    assert len(lines) == 2 + 8 * 3 + 6 * 2
    assert len(set(lines)) == len(lines)


def test_curves_can_be_chosen_by_how_they_are_counted():
    plan = PhotosPlan(legend=(("non-private", math.inf, 3, 8), ("element", 3.0, 3, 8), ("user", 3.0, 3, 8)))
    assert plan.counted([]) == plan.variants()
    true = {("as printed, true ε", "element"), ("as printed, true ε", "user")}
    chosen = plan.counted(["non-private", "as printed, true ε"])
    assert {(one.accounting, one.unit) for one in chosen} == true | {("non-private", "element")}
    compared = {(one.accounting, one.unit) for one in plan.compared()}
    assert compared == {("non-private", "element"), ("pairs sampled", "element"), ("as printed, true ε", "user")}
    (coinless,) = plan.counted(["fixed order"])
    assert replace(coinless, accounting=Accounting.PAIRS) in plan.variants()
    with pytest.raises(ArgumentError, match="accounting must be one of"):
        plan.counted(["pairs"])
    with pytest.raises(ArgumentError, match="accounting must be a way in which a curve"):
        replace(plan, legend=(("user", 3.0, 3, 8),)).counted(["pairs sampled"])


def test_chance_from_run_to_run_is_welchs_interval():
    (one,) = recorded_results("photos")[1][:1]
    better, worse = ([replace(one, accuracy=(value,)) for value in values] for values in ((0.8, 0.9), (0.4, 0.5)))
    gap, bar = difference(better, worse)
    # Two runs each with the same spread: the error of the difference is 0.1/√2, with two degrees of freedom, for which
    # Student's distribution function is 1/2 + t/(2√(2 + t²)); at 0.975 that is t² = 2 · 0.95²/(1 − 0.95²).
    assert gap == pytest.approx(0.4)
    assert bar == pytest.approx(0.1 / math.sqrt(2) * math.sqrt(2 * 0.95**2 / (1 - 0.95**2)))
    assert difference(better[:1], worse, spread=0.1)[1] == pytest.approx(1.959964 * 0.1 * math.sqrt(1.5))
    assert difference(better[:1] * 2, worse[:1] * 2) == pytest.approx((0.4, 0.0))


def test_printed_noise_claims_the_epsilon_of_the_legend_and_does_not_have_it():
    printed = line(Accounting.PRINTED, clusters=50, users=8_000)
    schedule = Schedule(100, 0.01, 500)
    sigma = noise_for(printed, schedule)
    assert claimed(event(printed, schedule, sigma), printed.delta) == pytest.approx(3.0, rel=1e-4)
    assert true_epsilon(printed, schedule).low > 3 * 3.0


@pytest.mark.parametrize("accounting", [Accounting.TRUE, Accounting.PAIRS])
def test_true_noise_keeps_its_promise_and_is_not_wasteful(accounting):
    sigma = noise_for(line(accounting), SCHEDULE)
    assert account(event(line(accounting), SCHEDULE, sigma), line().delta).up <= 3.0
    assert account(event(line(accounting), SCHEDULE, 0.98 * sigma), line().delta).up > 3.0


def test_pairs_need_the_noise_of_single_element_users():
    whole = line(Accounting.TRUE, Unit.USER)
    assert noise_for(line(Accounting.PAIRS), SCHEDULE) == pytest.approx(noise_for(whole, SCHEDULE), rel=1e-3)
    assert noise_for(line(Accounting.TRUE), SCHEDULE) > noise_for(line(Accounting.PAIRS), SCHEDULE)
    assert line(Accounting.PAIRS).sampler is Sampler.POISSON_PAIRS
    assert whole.sampler is Sampler.POISSON_USERS


def test_lines_that_make_no_sense_are_refused():
    with pytest.raises(ArgumentError, match="sampling users is already right"):
        line(Accounting.PAIRS, Unit.USER)
    with pytest.raises(ArgumentError, match="infinite exactly"):
        line(Accounting.NONE)


def test_top_k_counts_as_sorting_does():
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=(50, 7)), rng.integers(7, size=50)
    expected = np.mean([labels[i] in np.argsort(-scores[i])[:3] for i in range(50)])
    assert top(torch.from_numpy(scores), torch.from_numpy(labels), 3) == pytest.approx(expected)


def test_reduced_rows_depend_on_themselves_alone():
    rows = np.random.default_rng(0).normal(size=(6, 40)).astype(np.float32)
    whole, alone = reduced(rows, 16), reduced(rows[2:3], 16)
    assert whole.shape == (6, 16)
    assert np.allclose(np.linalg.norm(whole, axis=1), 1, atol=1e-6)
    assert np.allclose(whole[2], alone[0], atol=1e-6)


def test_missing_photos_become_a_stand_in_that_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("ELEMENTDP_DATA", str(tmp_path))
    monkeypatch.setenv("ELEMENTDP_OFFLINE", "1")
    monkeypatch.setattr("elementdp.companion.data.ladder.find", lambda file: None)
    pool = load_photos(photos=50, tests=20)
    assert pool.stand_in
    assert "stand-in, not real data" in pool.label
    assert pool.reason != "asked for"


def test_training_without_privacy_learns_the_stand_in(task):
    plain = Variant(Accounting.NONE, Unit.ELEMENT, math.inf, 3, 8, 60)
    found = run(task, plain, Schedule(10, 0.5, 30), Hyperparameters(5.0, math.inf), evaluations=3)
    # Five of six classes at random would be right 5/6 of the time.
    assert found.reached > 0.95
    assert found.iterations == (10, 20, 30)
    assert found.best == sorted(found.best)
    assert found.sigma == 0
    assert math.isinf(found.true_up)


def test_a_line_resumes_bit_for_bit_and_is_not_run_twice(task, tmp_path):
    setting = Hyperparameters(1.0, 0.3)
    expected = run(task, line(), SCHEDULE, setting, evaluations=6)
    evaluation = count()

    def fragile(model: nn.Module, part: int) -> float:
        if next(evaluation) == 3:
            raise KeyboardInterrupt
        return task.score(model, part)

    def never(model: nn.Module, part: int) -> float:
        raise AssertionError("a finished line is evaluated again")

    broken = ImageTask(task.make, task.data, fragile, task.content)
    with pytest.raises(KeyboardInterrupt):
        run(broken, line(), SCHEDULE, setting, evaluations=6, compute=Compute(work=tmp_path))
    assert run(broken, line(), SCHEDULE, setting, evaluations=6, compute=Compute(work=tmp_path)) == expected
    done = ImageTask(task.make, task.data, never, task.content)
    assert run(done, line(), SCHEDULE, setting, evaluations=6, compute=Compute(work=tmp_path)) == expected


def test_the_beginning_of_a_run_is_that_of_the_whole_run_and_can_go_on(task, tmp_path):
    setting = Hyperparameters(1.0, 0.3)
    whole = run(task, line(), SCHEDULE, setting, evaluations=6)
    half = whole.iterations[2]
    kept = Compute(work=tmp_path)
    begun = run(task, line(), SCHEDULE, setting, evaluations=6, until=half, compute=kept)
    assert begun == replace(whole, iterations=whole.iterations[:3], accuracy=whole.accuracy[:3])
    assert run(task, line(), SCHEDULE, setting, evaluations=6, compute=kept) == whole
    assert run(task, line(), SCHEDULE, setting, evaluations=6, until=half, compute=kept) == begun


def test_tuning_sees_neither_the_reported_photos_nor_the_reported_users(task):
    parts, repetitions = [], []

    def score(model: nn.Module, part: int) -> float:
        parts.append(part)
        return task.score(model, part)

    def data(which: Variant, repetition: int):
        repetitions.append(repetition)
        return task.data(which, repetition)

    plan = PhotosPlan(users=60, images=10, steps=4, q=0.2, step_sizes=(1.0, 3.0), tuning_steps=2, evaluations=2)
    (found,) = study(ImageTask(task.make, data, score, "x"), plan, [line()])
    assert parts == sorted(parts)
    assert set(parts) == {0, 1}
    assert repetitions[-1] == found.repetition == 0
    assert 0 not in repetitions[:-1]


def test_where_rates_are_tuned_the_step_size_is_settled_by_whole_runs(task):
    """A judge that likes large steps at first and small ones in the end."""
    asked = tuning.run
    now = []

    def noting(*arguments, **options):
        now[:] = [arguments[3].step, options["stop"]]
        return asked(*arguments, **options)

    def score(model: nn.Module, part: int) -> float:
        step, stop = now
        return 0.5 + 0.1 * math.log10(step) * (1 if stop else -1)

    plan = PhotosPlan(
        users=60,
        images=10,
        steps=8,
        q=0.1,
        rhos=(0.3,),
        step_sizes=(0.1, 1.0, 10.0),
        tuning_steps=4,
        evaluations=2,
        rate_factors=(1.0, 2.0),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "run", noting)
        (found,) = study(ImageTask(task.make, task.data, score, "turns"), plan, [line()])
    (ladder,) = ladders(line(), [0.3], [0.1, 1.0, 10.0])
    assert max(found.tried, key=lambda trial: trial[2])[0] == ladder[-1].step
    assert found.step == ladder[0].step
    assert {q for step, _, _, q in found.whole if step == ladder[0].step} == {trial[3] for trial in found.tried}


@pytest.mark.parametrize("peak", range(7))
@pytest.mark.parametrize("start", [0, 3, 6])
def test_climbing_finds_the_top_of_a_hill_without_trying_every_rung(peak, start):
    seen = []

    def value(rung):
        seen.append(rung)
        return -abs(rung - peak)

    assert climb(value, 7, start) == peak
    assert len(seen) == len(set(seen)) <= abs(peak - start) + 3


def test_a_line_that_is_at_chance_on_the_way_is_followed_down():
    chance = [0.3, 0.2, 0.101, 0.1, 0.1, 0.103, 0.1]
    assert climb(chance.__getitem__, 7, 4) == 0
    assert climb(lambda rung: 0.1, 7, 4) == 0  # of equals the smallest


def test_ladders_are_for_updates_of_length_one():
    (ladder,) = ladders(line(k=4), [0.5], [3.0, 1.0])
    assert ladder == [Hyperparameters(1.0 / 0.5 / 4, 0.5), Hyperparameters(3.0 / 0.5 / 4, 0.5)]
    assert ladders(line(Accounting.TRUE, Unit.USER, k=4), [0.5], [1.0]) == [[Hyperparameters(2.0, 0.5)]]
    assert ladders(non_private(4, 8, 60), [0.5, 1.0], [1.0]) == [[Hyperparameters(0.25, math.inf)]]
    assert len(ladders(line(), [0.5, 1.0], [1.0, 2.0])) == 2


def test_everything_tried_is_listed_and_the_best_of_it_is_taken(task):
    plan = PhotosPlan(users=60, images=10, steps=6, q=0.2, rhos=(0.1, 1.0), step_sizes=(0.1, 1.0, 10.0), tuning_steps=6)
    (found,) = study(task, plan, [line()])
    best = max(reached for _, _, reached, _ in found.tried)
    assert (found.step, found.rho, best, found.q) in found.tried
    assert {trial[1] for trial in found.tried} == {0.1, 1.0}
    assert len({trial[:2] for trial in found.tried}) == len(found.tried) <= 6


def test_another_rate_is_equal_work():
    schedule = Schedule(10, 0.2, 6)
    found = [at_rate(schedule, factor) for factor in (0.5, 1.0, 2.0, 100.0)]
    assert [(one.q, one.steps) for one in found] == [(0.1, 12), (0.2, 6), (0.4, 3), (1.0, 1)]


def test_a_line_runs_at_the_rate_that_did_best_on_held_out_users(task):
    """A judge that sees only how often users are drawn: the line has to end at the rate it likes best."""
    rates = []

    def likes(wanted: float) -> ImageTask:
        def data(which: Variant, repetition: int):
            return task.data(which, repetition)

        def score(model: nn.Module, part: int) -> float:
            return 1 - abs(rates[-1] - wanted)

        return ImageTask(task.make, data, score, f"likes {wanted}")

    plan = PhotosPlan(
        users=60,
        images=10,
        steps=8,
        q=0.1,
        rhos=(0.3,),
        step_sizes=(1.0,),
        tuning_steps=4,
        evaluations=2,
        rate_factors=(4.0, 1.0, 2.0, 0.5),
    )
    asked = tuning.run

    def noting(*arguments, **options):
        rates.append(arguments[2].q)
        return asked(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "run", noting)
        for wanted in (0.05, 0.1, 0.4):
            rates.clear()
            (found,) = study(likes(wanted), plan, [line()])
            assert found.q == pytest.approx(wanted)
            assert found.steps == round(0.8 / wanted)
            assert found.sigma == noise_for(line(), Schedule(10, found.q, found.steps))
            assert {trial[3] for trial in found.tried} == set(rates) == {trial[3] for trial in found.whole}
            assert all(best == pytest.approx(1 - abs(q - wanted)) for _, _, best, q in found.whole)
            assert found.passes[-1] == pytest.approx(0.8)


def told(accounting, unit, epsilon, reached, k=100, clusters=500, low=1.0):
    return RunResult(
        accounting=str(accounting),
        unit=str(unit),
        epsilon=epsilon,
        k=k,
        clusters=clusters,
        users=8_000,
        images=100,
        q=0.01,
        steps=50,
        sigma=1.0,
        true_low=low,
        true_up=low,
        step=1.0,
        rho=1.0,
        repetition=0,
        iterations=(50,),
        accuracy=(reached,),
    )


def example(user_one):
    return [
        told(Accounting.NONE, Unit.ELEMENT, math.inf, 0.9),
        told(Accounting.PRINTED, Unit.ELEMENT, 3.0, 0.8, low=40.0),
        told(Accounting.PAIRS, Unit.ELEMENT, 3.0, 0.8),
        told(Accounting.TRUE, Unit.ELEMENT, 3.0, 0.5),
        told(Accounting.PRINTED, Unit.USER, 3.0, 0.6),
        told(Accounting.TRUE, Unit.USER, 3.0, 0.79),
        told(Accounting.PRINTED, Unit.USER, 1.0, user_one),
    ]


def test_sentences_are_settled_only_beyond_chance():
    rows = {row.said: row for row in photos_sentences(example(0.3), 1_000)}
    worst = rows["User-level privacy with ε = 1 is substantially worse than any other method."]
    assert worst.verdict == "yes"
    close = {row.said: row for row in photos_sentences(example(0.59), 1_000)}[worst.said]
    assert close.holds is None
    assert rows["At the same true ε = 3, all at one rate, sampling pairs beats sampling users."].verdict == "yes"
    beats = rows["At the same true ε = 3, all at one rate, element level with pairs sampled beats user level."]
    assert beats.holds is None
    assert rows["Element-level accuracy rises with the diversity of a user's images."].holds is None
    axis = rows["The legend's ε is the element-level ε of the run."]
    assert axis.verdict == "no"
    assert "40" in axis.found


def test_units_are_compared_each_at_its_own_rate_where_that_was_run():
    fair = [
        replace(told(Accounting.PAIRS, Unit.ELEMENT, 3.0, 0.8, k=30)),
        replace(told(Accounting.TRUE, Unit.USER, 3.0, 0.9, k=30), q=0.04, steps=12, iterations=(12,)),
    ]
    rows = {row.said: row for row in photos_sentences(example(0.3), 1_000, fair)}
    beats = rows["At the same true ε = 3, each at its own rate, element level with pairs sampled beats user level."]
    assert beats.holds is None
    assert "50 and 12 steps" in beats.more
    assert rows["At the same true ε = 3, each at its own rate, sampling pairs beats sampling users."].holds is None
    # no fair lines at ε = 1, so these go by the others
    assert "At the same true ε = 1, all at one rate, sampling pairs beats sampling users." in rows


def test_diversity_needs_its_ends_beyond_chance_and_no_step_back():
    said = "Element-level accuracy rises with the diversity of a user's images."

    def row(*reached):
        lines = [
            told(Accounting.PRINTED, Unit.ELEMENT, 3.0, value, k)
            for value, k in zip(reached, (100, 30, 5), strict=True)
        ]
        return {row.said: row for row in photos_sentences(lines, 1_000)}[said]

    assert row(0.8, 0.7, 0.6).verdict == "yes"
    assert row(0.8, 0.795, 0.6).verdict == "yes"
    assert row(0.7, 0.8, 0.6).holds is None
    assert row(0.8, 0.795, 0.79).holds is None
    assert row(0.6, 0.7, 0.8).holds is None


def test_more_clusters_are_compared_at_the_same_diversity():
    said = "Element-level accuracy rises with the number of clusters."
    lines = [
        told(Accounting.PRINTED, Unit.ELEMENT, 3.0, 0.9, 100, 500),
        told(Accounting.PRINTED, Unit.ELEMENT, 3.0, 0.7, 30, 500),
        told(Accounting.PRINTED, Unit.ELEMENT, 3.0, 0.8, 30, 50),
    ]
    assert {row.said: row for row in photos_sentences(lines, 1_000)}[said].holds is None
    lines[1], lines[2] = (replace(lines[1], accuracy=(0.8,)), replace(lines[2], accuracy=(0.7,)))
    assert {row.said: row for row in photos_sentences(lines, 1_000)}[said].verdict == "yes"


def test_advantages_pair_lines_of_the_same_users_at_the_same_true_epsilon():
    lines = [
        told(Accounting.NONE, Unit.ELEMENT, math.inf, 0.9),
        told(Accounting.PAIRS, Unit.ELEMENT, 3.0, 0.8),
        told(Accounting.PRINTED, Unit.USER, 3.0, 0.7),
        told(Accounting.TRUE, Unit.USER, 3.0, 0.5),
        told(Accounting.PAIRS, Unit.ELEMENT, 3.0, 0.6, k=5),
        told(Accounting.TRUE, Unit.USER, 1.0, 0.4),
    ]
    (row,) = advantages(lines, 400)
    assert (row.k, row.plain) == (100, 0.9)
    assert math.isnan(row.sampled)
    (row,) = advantages([*lines, told(Accounting.TRUE, Unit.ELEMENT, 3.0, 0.45)], 400)
    assert row.sampled == 0.45
    assert not row.sampled_loses  # 5 points, on 400 photos
    (row,) = advantages([*lines, told(Accounting.TRUE, Unit.ELEMENT, 3.0, 0.35)], 400)
    assert row.sampled_loses
    assert row.gain == pytest.approx(0.3)
    assert row.standard_error == pytest.approx(math.sqrt((0.8 * 0.2 + 0.5 * 0.5) / 400))
    twice = [*lines, replace(lines[1], accuracy=(0.7,)), replace(lines[3], accuracy=(0.5,))]
    (row,) = advantages(twice, 400)
    assert row.gain == pytest.approx(0.25)
    assert row.standard_error == pytest.approx(0.05)


def test_rates_that_were_tried_are_listed_once_a_line_with_their_steps():
    seen = ((1.0, 1.0, 0.4, 0.01), (1.0, 1.0, 0.25, 0.04), (3.0, 1.0, 0.45, 0.01))
    one = replace(told(Accounting.PAIRS, Unit.ELEMENT, 3.0, 0.5), whole=seen)
    again = replace(one, repetition=1)
    assert rates_tried([one, again, told(Accounting.TRUE, Unit.USER, 3.0, 0.5)], 0.5) == [
        ("element, pairs sampled, true ε", "100/500", 0.01, 50, 40.0, 45.0),
        ("element, pairs sampled, true ε", "100/500", 0.04, 12, 25.0, "–"),
    ]


def test_a_recorded_row_is_read_back_as_it_was():
    one = told(Accounting.PAIRS, Unit.ELEMENT, 3.0, 0.5)
    row = {key: list(value) if isinstance(value, tuple) else value for key, value in to_row(one).items()}
    assert from_row(row) == one


def test_recorded_noise_and_true_epsilon_are_computed_again():
    from elementdp.companion.experiments.recorded import FOLDER, read

    names = [path.stem for kind in ("photos", "cifar") for path in FOLDER.glob(f"{kind}*.json")]
    assert names, "the repository has recorded image runs"
    tables = [read(name) for name in names]
    lines = {
        (one.accounting, one.unit, one.epsilon, one.clusters, one.users, one.q, one.steps): one
        for table in tables
        for one in results_of(table)
    }
    begun = [one for table in tables if table.provenance.parameters.get("until") for one in results_of(table)]
    for one in lines.values():
        assert one.iterations[-1] == one.steps or one in begun
        if one.epsilon != 3.0:
            continue
        same = Variant(Accounting(one.accounting), Unit(one.unit), one.epsilon, one.k, one.clusters, one.users)
        schedule = Schedule(one.images, one.q, one.steps)
        assert noise_for(same, schedule) == pytest.approx(one.sigma, rel=1e-3)
        # With the recorded noise both bands hold the same exact value; a tighter accountant moves their ends.
        band = account(event(same, schedule, one.sigma), same.delta)
        assert band.low <= one.true_up
        assert one.true_low <= band.up


def test_a_line_told_by_two_recorded_runs_counts_once(tmp_path):
    first, other = told(Accounting.NONE, Unit.ELEMENT, math.inf, 0.5), told(Accounting.PAIRS, Unit.ELEMENT, 3.0, 0.4)
    other = replace(other, tried=((1.0, math.inf, 0.3, 0.01),), whole=((1.0, 0.1, 0.3, 0.01),))
    for name, lines in (("cifar", [first]), ("cifar-more", [first, other])):
        with recording(name, {"steps": 50}, 0, {}, tmp_path) as tables:
            tables["lines"] = [to_row(one) for one in lines]
    runs, lines = recorded_results("cifar", tmp_path)
    assert len(runs) == 2
    assert lines == [first, other]
    with recording("cifar-rest", {"steps": 60}, 0, {}, tmp_path) as tables:
        tables["lines"] = [to_row(other)]
    with pytest.raises(ElementdpError, match="different sizes"):
        recorded_results("cifar", tmp_path)


def test_a_figure_has_the_papers_legend_and_bands_over_repetitions():
    pair = [
        replace(told(Accounting.PRINTED, Unit.ELEMENT, 3.0, reached), repetition=number)
        for number, reached in enumerate((0.5, 0.7))
    ]
    results = [*pair, told(Accounting.PRINTED, Unit.USER, 3.0, 0.3), told(Accounting.NONE, Unit.ELEMENT, math.inf, 0.9)]
    printed = {"non-private": Accounting.NONE, "element": Accounting.PRINTED, "user": Accounting.PRINTED}
    results = [replace(one, iterations=(25, 50), accuracy=(0.1, one.reached)) for one in results]
    curves = legend_curves(results, PHOTOS_LEGEND, printed, "clusters")
    drawing = paper_figure({"top": curves}, lambda one: one.accuracy, "accuracy")
    (axis,) = drawing.axes
    order = ["non-private, 100/500", "element-level, ε = 3, 100/500", "user-level, ε = 3, 100/500"]
    assert [text.get_text() for text in axis.get_legend().get_texts()] == order
    edges = np.concatenate([path.vertices for band in axis.collections for path in band.get_paths()])
    heights = sorted({round(float(y), 6) for x, y in edges if x == 50})
    # two values 0.2 apart: standard error 0.1, and the paper's bars are 1.64 of them
    assert heights == [pytest.approx(0.6 - 0.164), pytest.approx(0.6 + 0.164)]
    plt.close(drawing)


def test_recorded_pages_show_what_was_recorded():
    page = PhotosPage.read()
    shown = page.figure_four()
    assert len(shown.rows) == len(PHOTOS_LEGEND)
    by_hand = max(one.reached for one in page.results if one.accounting == Accounting.NONE and one.k == 100)
    assert shown.rows[0][1] == pytest.approx(100 * by_hand)
    stops = page.where_it_stops()
    assert len(stops.rows) == len(page.gains) + len(page.fair)
    for exhibit in (shown, stops):
        assert exhibit.alt and exhibit.caption
        plt.close(exhibit.figure)


def test_invented_pictures_say_so_in_the_figure(pool):
    shown = largest_elements(pool, 8, 0, "x")
    assert "stand-in" in shown.figure.get_suptitle()
    elements = pool.elements(8)
    commonest = sum(np.bincount(pool.labels[elements == element]).max() for element in set(elements.tolist()))
    assert shown.numbers["x-pure"] == f"{100 * commonest / len(elements):.0f}"
    plt.close(shown.figure)
