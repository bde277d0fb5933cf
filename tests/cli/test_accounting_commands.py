"""``elementdp epsilon`` and ``elementdp noise``."""

import json
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from elementdp.cli import cli
from elementdp.cli.options import Command
from elementdp.companion.experiments.record import record
from elementdp.errors import ArgumentError, ElementdpError, NoGuaranteeError
from elementdp.privacy import (
    FixedOrder,
    RandomAllocation,
    Relation,
    Sampler,
    SubsampledGaussian,
    account,
    claimed,
    promise,
)

RUN = ["-q", "0.02", "--steps", "300", "--delta", "1e-6"]


def answer(*arguments: str) -> dict[str, object]:
    result = CliRunner().invoke(cli, [*arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0
    found: dict[str, object] = json.loads(result.output)
    return found


def test_epsilon_in_json_has_the_agreed_keys() -> None:
    found = answer("epsilon", "--sampler", "poisson-users", "--elements-per-user", "3", "--sigma", "4", *RUN)
    assert list(found) == ["low", "estimate", "up", "claimed", "unit", "relation", "sampler", "delta", "alternatives"]
    event = SubsampledGaussian(Sampler.POISSON_USERS, 4.0, 0.02, 300, elements_per_user=3)
    band = account(event, 1e-6)
    assert [found[key] for key in ("low", "estimate", "up")] == [band.low, band.estimate, band.up]
    assert found["claimed"] == claimed(event, 1e-6)
    assert (found["unit"], found["relation"], found["sampler"]) == ("element", "replace", "poisson-users")


def test_elements_default_to_unbounded() -> None:
    found = answer("epsilon", "--sampler", "fixed-users", "--sigma", "4", *RUN)
    assert found["up"] == account(SubsampledGaussian(Sampler.FIXED_USERS, 4.0, 0.02, 300), 1e-6).up


def test_noise_reaches_the_target_and_says_it_in_words() -> None:
    found = answer("noise", "--epsilon", "2", "--sampler", "poisson-pairs", *RUN)
    assert found["up"] <= 2.0 < found["up"] * 1.002  # type: ignore[operator]
    words = CliRunner().invoke(cli, ["noise", "--epsilon", "2", "--sampler", "poisson-pairs", *RUN]).output
    printed = float(words.split()[2])
    assert found["sigma"] <= printed <= found["sigma"] * (1 + 1e-5)  # type: ignore[operator]
    assert "one element of one user" in words
    assert "replaced" in words
    assert "paper would print" in words


def test_the_edge_of_the_tested_range_is_not_called_the_answer() -> None:
    result = CliRunner().invoke(cli, ["noise", "--epsilon", "1e9", "--sampler", "poisson-pairs", *RUN])
    assert isinstance(result.exception, ElementdpError)
    assert "--epsilon 1e+09 has no smallest sigma in the tested range" in str(result.exception)
    assert "sigma =" not in result.output


def test_words_call_a_false_claim_false() -> None:
    words = CliRunner().invoke(cli, ["epsilon", "--sampler", "poisson-users", "--sigma", "4", *RUN]).output
    assert "too small" in words


@pytest.mark.parametrize(
    ("arguments", "error", "name"),
    [
        (["--sigma", "-1"], ArgumentError, "--sigma must be"),
        (["--sigma", "1", "--steps", "0"], ArgumentError, "--steps must be"),
        (["--sigma", "1", "-q", "2"], ArgumentError, "-q must be"),
        (["--sigma", "1", "--delta", "0"], ArgumentError, "--delta must be"),
        (["--sigma", "1", "--elements-per-user", "0"], ArgumentError, "--elements-per-user must be"),
        (["--sigma", "1", "--unit", "user"], NoGuaranteeError, "with --elements-per-user given"),
    ],
)
def test_bad_ranges_are_refused_by_name(arguments: list[str], error: type[Exception], name: str) -> None:
    result = CliRunner().invoke(cli, ["epsilon", "--sampler", "poisson-users", *RUN, *arguments])
    assert isinstance(result.exception, error)
    assert name in str(result.exception)
    assert "elements_per_user" not in str(result.exception)


def commands(group: click.Group) -> Iterator[click.Command]:
    for name in group.list_commands(click.Context(group)):
        found = group.get_command(click.Context(group), name)
        assert found is not None
        yield from commands(found) if isinstance(found, click.Group) else [found]


@pytest.mark.parametrize("group", [cli, record])
def test_every_command_tells_refusals_in_the_spelling_of_its_options(group: click.Group) -> None:
    assert all(isinstance(found, Command) for found in commands(group))


ORDER = ["--sampler", "fixed-order", "--sigma", "4", "--delta", "5e-5"]


def test_a_fixed_order_beside_sampling() -> None:
    found = answer("epsilon", *ORDER, "--epochs", "5", "--batches", "100")
    assert found["up"] == account(FixedOrder(4.0, 500, 100), 5e-5).up
    assert found["claimed"] is None
    users = SubsampledGaussian(Sampler.POISSON_USERS, 4.0, 0.01, 500)
    assert found["alternatives"]["poisson-users"] == promise(users, 5e-5).epsilon  # type: ignore[index]
    words = CliRunner().invoke(cli, ["epsilon", *ORDER, "--epochs", "5", "--batches", "100"]).output
    assert "worse, as is proved" in words
    assert "nobody sees" in words
    assert answer("epsilon", *ORDER, "--epochs", "5")["up"] == found["up"]
    assert answer("epsilon", *ORDER, "--steps", "401", "--batches", "100")["up"] == found["up"]


@pytest.mark.parametrize(("sigma", "delta", "verdict"), [("4", "5e-5", "(better)"), ("12", "0.031", "(no better)")])
def test_sampled_users_beside_a_fixed_order(sigma: str, delta: str, verdict: str) -> None:
    run = ["epsilon", "--sampler", "poisson-users", "-q", "0.01", "--steps", "500", "--sigma", sigma, "--delta", delta]
    if sigma == "12":
        run[run.index("500")] = "100"
    assert verdict in CliRunner().invoke(cli, run).output


def test_allocated_pairs_beside_a_fixed_order() -> None:
    run = ["--sampler", "allocated-pairs", "--delta", "5e-5"]
    found = answer("epsilon", *run, "--batches", "100", "--epochs", "5", "--sigma", "4")
    assert found["up"] == account(RandomAllocation(4.0, 500, 100), 5e-5).up
    assert found["alternatives"]["fixed-order"] == promise(FixedOrder(4.0, 5), 5e-5).epsilon  # type: ignore[index]
    assert answer("noise", *run, "--batches", "20", "--steps", "10", "--epsilon", "1")["up"] <= 1  # type: ignore[operator]
    for wrong in (["-q", "0.1", "--batches", "20"], ["--bands", "3", "--batches", "20"], []):
        refused = CliRunner().invoke(cli, ["epsilon", *run, "--epochs", "5", "--sigma", "4", *wrong])
        assert isinstance(refused.exception, ArgumentError)


def test_correlated_noise_says_what_it_gains() -> None:
    run = ["noise", "--sampler", "fixed-order", "--epochs", "4", "--batches", "50", "--delta", "5e-5", "--epsilon", "3"]
    found, plain = answer(*run, "--bands", "4"), answer(*run)
    assert found["sigma"] > plain["sigma"]  # type: ignore[operator]
    assert "times the error of independent noise" in CliRunner().invoke(cli, [*run, "--bands", "4"]).output


def test_the_other_relation_has_its_own_answer_and_no_claim() -> None:
    found = answer("epsilon", "--sampler", "poisson-pairs", "--sigma", "4", "--relation", "add-remove", *RUN)
    event = SubsampledGaussian(Sampler.POISSON_PAIRS, 4.0, 0.02, 300, relation=Relation.ADD_REMOVE)
    assert found["up"] == account(event, 1e-6).up
    assert found["claimed"] is None
    words = CliRunner().invoke(cli, ["epsilon", "--sampler", "poisson-pairs", "--sigma", "4", *RUN]).output
    assert "about half this ε" in words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([*ORDER], "--epochs must be given"),
        ([*ORDER, "--epochs", "5", "-q", "0.1"], "-q must be left out"),
        ([*ORDER, "--epochs", "5", "--bands", "4"], "--batches must be given"),
        ([*ORDER, "--steps", "5"], "--epochs must be given"),
        (["--sampler", "poisson-users", "--sigma", "4", "--delta", "1e-5"], "-q must be given"),
        (["--sampler", "poisson-users", "--sigma", "4", "--epochs", "3", *RUN], "--epochs must be left out"),
    ],
)
def test_options_that_do_not_fit_the_sampler_are_refused(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(cli, ["epsilon", *arguments])
    assert isinstance(result.exception, ArgumentError)
    assert words in str(result.exception)
