"""Section 4.4 in small: the tutorial's network, differences by hand, and a run on invented photos."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from elementdp.companion.experiments.images import (
    Accounting,
    CifarPlan,
    RunResult,
    cifar_sentences,
    cifar_stand_in,
    load_cifar,
    study,
    tutorial_network,
    whole_network,
)
from elementdp.companion.experiments.images.network import HighestOfSquare
from elementdp.companion.experiments.images.sentences import gap_sentences
from elementdp.companion.experiments.images.tasks import pixels
from elementdp.learning.models import layer_rules
from elementdp.privacy import Unit


def test_the_network_is_the_tutorials():
    network = tutorial_network()
    # conv 3·5·5·6+6, conv 6·5·5·16+16, then 400·120+120, 120·84+84, 84·10+10
    assert sum(p.numel() for p in network.parameters()) == 456 + 2_416 + 48_120 + 10_164 + 850
    assert network(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
    assert layer_rules(network) is not None


def test_the_highest_of_a_square_is_torchs_own_maximum():
    torch.manual_seed(0)
    # Few values, so that most squares have ties: the gradient has to go to the same pixel.
    images = torch.randint(-1, 2, (5, 3, 8, 6)).float().requires_grad_()
    weights = torch.randn(5, 3, 4, 3)
    found = []
    for pool in (HighestOfSquare(), torch.nn.MaxPool2d(2)):
        (gradient,) = torch.autograd.grad((pool(images) * weights).sum(), images)
        found.append((pool(images), gradient))
    assert torch.equal(found[0][0], found[1][0]) and torch.equal(found[0][1], found[1][1])


def test_pixels_lie_between_minus_one_and_one_channels_first():
    images = np.zeros((1, 32, 32, 3), dtype=np.uint8)
    images[0, 3, 5, 1] = 255
    found = pixels(images)
    assert found.shape == (1, 3, 32, 32)
    assert found[0, 1, 3, 5] == 1
    assert found.sum() == 1 - (found.numel() - 1)


def line(accuracy, repetition, accounting=Accounting.PAIRS, unit=Unit.ELEMENT, k=30, epsilon=3.0):
    return RunResult(
        accounting=str(accounting),
        unit=str(unit),
        epsilon=epsilon,
        k=k,
        clusters=100,
        users=8_000,
        images=100,
        q=0.01,
        steps=20,
        sigma=1.0,
        true_low=9.0,
        true_up=9.0,
        step=1.0,
        rho=1.0,
        repetition=repetition,
        iterations=(10, 20),
        accuracy=accuracy,
    )


def test_gaps_are_to_the_trained_network_and_decide_beyond_the_spread_of_runs():
    users, near = line((0.1, 0.4), 0, Accounting.TRUE, Unit.USER), line((0.3, 0.59), 0, Accounting.PRINTED)

    def holds(trained, whole, spread=0.01):
        return [row.holds for row in gap_sentences([users, near], trained, spread, whole=whole)]

    assert holds(0.6, True, spread=0.003) == [True, True]  # 20 points behind, and 1 point
    assert holds(0.6, True) == [True, None]  # 1 point behind, but 3.8 cannot be excluded
    assert holds(0.6, False, spread=0.003) == [True, None]  # a network that still learns may get away
    assert holds(0.6, True, spread=0.05) == [None, None]
    assert holds(0.7, True) == [True, False]
    assert holds(0.5, True) == [False, True]


def test_a_network_is_trained_if_it_is_beyond_chance():
    def holds(reached):
        rows = gap_sentences([line((reached, reached), 0, Accounting.PAIRS)], 0.6, 0.01, whole=True)
        return {row.said: row.holds for row in rows}[
            "It is possible to train a neural network with element-level privacy."
        ]

    assert [holds(0.5), holds(0.11), holds(0.05)] == [True, None, False]


def lines_of(repetition, shift=0.0):
    return [
        line((0.3, 0.4), repetition, Accounting.NONE, epsilon=math.inf),
        line((0.2, 0.39 + shift), repetition, Accounting.PRINTED),
        line((0.2, 0.39 + shift), repetition),
        line((0.1, 0.2 - shift), repetition, Accounting.TRUE),
        line((0.1, 0.1), repetition, Accounting.TRUE, Unit.USER),
        line((0.1, 0.1), repetition, Accounting.PRINTED, k=5),
    ]


def test_one_repetition_settles_nothing_but_the_accounting():
    rows = {row.said: row for row in cifar_sentences(lines_of(0))}
    axis = rows.pop("The legend's ε is the element-level ε of the run.")
    assert axis.verdict == "no"
    assert axis.more.startswith("2 of 2 printed")  # k = 30 and k = 5
    assert all(row.holds is None for row in rows.values())


def test_lines_that_differ_in_users_say_so():
    told = [*lines_of(0), replace(line((0.1, 0.3), 0, Accounting.PRINTED), users=2_000)]
    rows = {row.said: row for row in cifar_sentences(told + [replace(one, repetition=1) for one in told])}
    said = "As the sample size n grows, the accuracy improves."
    assert "n = 8,000: 39.0 %" in rows[said].more and "n = 2,000: 30.0 %" in rows[said].more
    assert rows["The legend's ε is the element-level ε of the run."].more.startswith("3 of 3 printed")


def test_repetitions_settle_what_their_bars_allow():
    pairs = "At the same true ε = 3, all at one rate, sampling pairs beats sampling users."
    rows = {row.said: row for row in cifar_sentences(lines_of(0) + lines_of(1, shift=0.01))}
    assert rows[pairs].verdict == "yes"
    assert rows["Fewer elements a user, worse performance."].verdict == "yes"
    assert rows["As the sample size n grows, the accuracy improves."].holds is None
    noisy = {row.said: row for row in cifar_sentences(lines_of(0) + lines_of(1, shift=-0.2))}
    assert noisy[pairs].holds is None


def test_units_are_compared_each_at_its_own_rate_where_that_was_run():
    told = lines_of(0) + lines_of(1, shift=0.01)
    fair = [line((0.2, 0.3), repetition) for repetition in (0, 1)]
    fair += [line((0.2, 0.35), repetition, Accounting.TRUE, Unit.USER) for repetition in (0, 1)]
    rows = {row.said: row for row in cifar_sentences(told, fair)}
    assert (
        rows["At the same true ε = 3, each at its own rate, element level with pairs sampled beats user level."].holds
        is None
    )


def test_a_small_run_tells_every_line():
    pool = cifar_stand_in(120, 60)
    assert "stand-in" in load_cifar("stand-in", 120, 60).label
    plan = CifarPlan(
        clusters=6,
        images=8,
        steps=2,
        users_a_step=3.0,
        step_sizes=(0.5,),
        evaluations=2,
        legend=(("element", 3.0, 4, 20), ("user", 3.0, 4, 20)),
    )
    found = study(whole_network(pool, plan.images), plan, plan.variants())
    assert [(told.unit, told.accounting) for told in found] == [
        ("element", "non-private"),
        ("element", "as printed"),
        ("element", "as printed, true ε"),
        ("element", "pairs sampled"),
        ("user", "as printed"),
        ("user", "as printed, true ε"),
    ]
    assert all(0 <= value <= 1 for told in found for value in told.accuracy)
    assert all(told.q == pytest.approx(3 / 20) for told in found)
