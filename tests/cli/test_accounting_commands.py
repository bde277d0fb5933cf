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
from elementdp.privacy import Sampler, SubsampledGaussian, account, claimed

RUN = ["-q", "0.02", "--steps", "300", "--delta", "1e-6"]


def answer(*arguments: str) -> dict[str, object]:
    result = CliRunner().invoke(cli, [*arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0
    found: dict[str, object] = json.loads(result.output)
    return found


def test_epsilon_in_json_has_the_agreed_keys() -> None:
    found = answer("epsilon", "--sampler", "poisson-users", "--elements-per-user", "3", "--sigma", "4", *RUN)
    assert list(found) == ["low", "estimate", "up", "claimed", "unit", "relation", "sampler", "delta"]
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
    assert f"sigma = {found['sigma']:.6g}" in words
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
