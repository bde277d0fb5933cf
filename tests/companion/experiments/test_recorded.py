"""Recorded runs: each names its run, and at least one of its points comes out again within its error."""

import math
from functools import cache

import numpy as np
import pytest

from elementdp.companion.data import SOURCES, find, load_users, load_vectors
from elementdp.companion.experiments import logistic, words
from elementdp.companion.experiments.recorded import FOLDER, Recorded, RunProvenance, read, recording
from elementdp.companion.experiments.words.corpus import counted, numbered
from elementdp.companion.provenance import package_hash
from elementdp.elements import Clusters
from elementdp.errors import ElementdpError

NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
SIGMAS = 4.0
"""Standard errors of the difference that recorded and recomputed may be apart."""


def test_every_experiment_has_a_recorded_run():
    assert {"logistic", "words-blogs", "words-chitchat", "words-reddit"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_run_says_where_it_came_from(name):
    run = read(name)
    p = run.provenance
    assert p.experiment == name and len(p.commit) == 40 and len(p.code) == 64
    assert p.hours > 0 and p.processor_hours > 0 and p.machine and p.started.endswith("Z")
    assert all(len(sha) == 64 for sha in p.data.values())
    assert bool(p.data) == (not name.startswith(("logistic", "spark")))
    assert all(run.tables.values())
    assert (FOLDER / f"{name}.json").stat().st_size < 200_000


def agree(recorded: float, recorded_se: float, again: np.ndarray) -> None:
    spread = math.hypot(recorded_se, again.std(ddof=1) / math.sqrt(len(again)))
    assert abs(again.mean() - recorded) < SIGMAS * spread


@pytest.mark.parametrize(
    ("method", "epsilon"), [("non-private", math.inf), ("element, repaired", 0.1), ("user, as printed", 0.25)]
)
def test_logistic_points_come_out_again(method, epsilon):
    """Other seeds, the recorded setting, noise calibrated anew."""
    run = read("logistic")
    (row,) = run.rows("points", method=method, epsilon=epsilon, k=2, estimate="last")
    design = logistic.Design(**run.provenance.parameters["design"])
    kind = logistic.LogisticMethod(method)
    sigma = logistic.noise_for(kind, design, row["q"], epsilon)
    assert sigma == pytest.approx(row["sigma"], rel=1e-3)
    setting = logistic.GridCell(2, kind, epsilon, row["q"], row["step"], row["clip"], sigma)
    plan = logistic.LogisticPlan(design, seed=run.provenance.seed + 1)
    again = np.array([logistic.run_settings(plan, [setting], repetition)[0, 0] for repetition in range(5)])
    agree(row["error"], row["standard_error"], again)


def test_logistic_true_epsilon_comes_out_again():
    run = read("logistic")
    design = logistic.Design(**run.provenance.parameters["design"])
    row = run.rows("rates", method="element, as printed", epsilon=1.0, q=0.05, k=2)[0]
    band = logistic.true_epsilon(logistic.LogisticMethod.ELEMENT_PRINTED, design, row["q"], row["sigma"])
    # The exact value lies in both brackets, whichever accountant drew the tighter one.
    assert band.low <= row["true_up"] and row["true_low"] <= band.up
    assert row["true_low"] > 1.0


@cache
def numbered_words(source: str, vectors: str):
    """The texts of a source as rows of the dictionary: several recorded runs share them."""
    texts, found = load_users(source), load_vectors(vectors)
    index = {word: row for row, word in enumerate(found.value.words)}
    return list(numbered(texts.value, index)), found.value.words, [texts.sha256, found.sha256]


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("words")])
def test_word_points_come_out_again(name):
    """Other splits of the same real users, K = 1 and every word its own; needs the data the run names."""
    run = read(name)
    chosen = run.provenance.parameters
    if any(find(SOURCES[chosen[kind]].file) is None for kind in ("source", "vectors")):
        pytest.skip(f"{chosen['source']} or {chosen['vectors']} is in no data directory")
    written, dictionary, hashes = numbered_words(chosen["source"], chosen["vectors"])
    assert hashes == list(run.provenance.data.values())
    table = counted(written, dictionary, chosen["n"], chosen["m"], run.provenance.seed, chosen["stop"])
    halves = [words.Halves.split(table, np.random.default_rng([99, number])) for number in range(5)]
    for clusters in (Clusters.single(table.vocabulary), Clusters.singletons(table.vocabulary)):
        part = words.Elements.of(clusters, table)
        for epsilon in (1.0, 8.0):
            where = {"clusters": clusters.count, "sensitivity": "right", "choice": "validation"}
            (row,) = run.rows("points", epsilon=epsilon, **where)
            sd = words.noise_scale(row["rho"], epsilon, chosen["n"] ** -1.1, halves[0].n, halves[0].m)
            rng = np.random.default_rng(98)
            again = [
                float(
                    words.drawn_error(
                        half.bias(part, (row["rho"],))[0], sd * part.scale(words.Sensitivity.RIGHT), part.columns(), rng
                    )
                )
                / half.baseline
                for half in halves
            ]
            agree(row["ratio"], row["standard_error"], np.array(again))


def test_recording_writes_only_complete_runs(tmp_path):
    with pytest.raises(KeyboardInterrupt), recording("x", {}, 0, {}, tmp_path) as tables:
        tables["points"] = [{"a": 1.0}]
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())
    with recording("x", {"n": 3}, 7, {"s": "0" * 64}, tmp_path) as tables:
        tables["points"] = [{"a": math.inf, "b": np.float64(0.5), "c": "é"}, {"a": 2.0, "b": 1.0, "c": "d"}]
    run = read("x", tmp_path)
    assert isinstance(run, Recorded) and isinstance(run.provenance, RunProvenance)
    assert run.rows("points") == [{"a": math.inf, "b": 0.5, "c": "é"}, {"a": 2.0, "b": 1.0, "c": "d"}]
    assert run.rows("points", c="d") == [{"a": 2.0, "b": 1.0, "c": "d"}]
    assert run.provenance.code == package_hash() and "seed 7" in run.label
    with pytest.raises(ElementdpError, match="no recorded run 'y'"):
        read("y", tmp_path)
