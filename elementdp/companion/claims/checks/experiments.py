"""Sections 4.1 and 4.2: each sentence settled by the recorded paper-size run, and again by a small run made now."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from elementdp.companion.claims.ledger import Effort, check
from elementdp.companion.claims.verdict import Fact, Finding, Gap, Role, printed, repaired
from elementdp.companion.experiments.recorded import Recorded, read
from elementdp.companion.experiments.sentence import Sentence
from elementdp.companion.theory.counting import project
from elementdp.elements import Clusters
from elementdp.errors import ElementdpError
from elementdp.privacy import paper_delta


@dataclass(frozen=True)
class Experiment:
    """A form of what Section 4 says of an experiment.

    ``true_noise``: its noise is such that the ε on the axis is true; ``sentences``: the text's sentences on what the
    figure shows are part of it.
    """

    true_noise: bool
    sentences: bool


PRINTED_EXPERIMENT = Experiment(true_noise=False, sentences=True)
"""As printed: noise by the paper's formulas, and every sentence of the text."""


def _facts(rows: list[Sentence], where: str) -> list[Fact]:
    return [
        Fact(Role.REPAIRED if row.repaired else Role.PRINTED, f"“{row.said}” {where}: {row.found}.", row.holds)
        for row in rows
        if row.holds is not None
    ]


def _recorded(name: str) -> Recorded | None:
    """The recorded run; None where the package was installed without the repository."""
    try:
        return read(name)
    except ElementdpError:
        return None


@check("exp-histogram")
def exp_histogram(effort: Effort, seed: int, statement: Experiment = PRINTED_EXPERIMENT) -> Finding:
    """Finer partitions do help; not by max P(c)², not linearly at small ε, and the printed noise is short by √2."""
    facts = _words_recorded() if statement.sentences else []
    return Finding(
        (*facts, printed(*_sensitivity(statement.true_noise), promised_delta=0.0), _words_now(effort, seed)),
        "Finer partitions give better estimators at every ε; the noise must be scaled to √2·ρ for clusters of several "
        "words, and the gain is far below max P(c)², because ρ is tuned and the coarse error is capped by that of "
        "answering zero.",
        Gap.ASSUMPTION,
    )


def _words_recorded() -> list[Fact]:
    """The text's sentences, on the recorded runs."""
    from elementdp.companion.experiments.words import PartitionSummary, WordsPoint, sentences

    facts: list[Fact] = []
    for name in ("words-blogs", "words-reddit"):
        run = _recorded(name)
        if run is not None:
            points = [WordsPoint(**row) for row in run.rows("points")]
            lines = [PartitionSummary(**row) for row in run.rows("lines")]
            size = f"n = {run.provenance.parameters['n']:,}, m = {run.provenance.parameters['m']:,}"
            facts += _facts(sentences(points, lines, run.provenance.parameters["n"]), f"({name[6:]}, {size}, recorded)")
    return facts


def _words_now(effort: Effort, seed: int) -> Fact:
    """A small run with the right noise: finer is better."""
    from elementdp.companion.experiments.words import WordsPlan, figure, prepare, slope

    users, words = {Effort.SMOKE: (80, 600), Effort.QUICK: (200, 2_000), Effort.PAPER: (400, 10_000)}[effort]
    made = prepare("stand-in", "stand-in", users, 200, (1, 10, 100), seed, vocabulary=words)
    plan = WordsPlan(epsilons=(1.0, 8.0), validation=2, splits=8, private_splits=0, seed=seed)
    points, _ = figure(made.corpus, made.partitions, plan)
    right = sorted((p for p in points if p.sensitivity == "right" and p.epsilon == 8.0), key=lambda p: p.clusters)
    fit = slope([p.clusters for p in right], [p.ratio for p in right])
    return repaired(
        f"On {users} invented users, run now: ratio {right[0].ratio:.3g} at K = 1, {right[-1].ratio:.3g} at K = d "
        f"(ε = 8, right sensitivity), slope {fit.slope:.2f} ± {fit.standard_error:.2f}.",
        right[-1].ratio < right[0].ratio,
    )


def _sensitivity(root_two: bool) -> tuple[str, bool]:
    """Two users' counts in a two-word cluster, projected, can be √2·ρ apart: the smallest example."""
    rho, scaled = 1.0, math.sqrt(2) if root_two else 1.0
    counts = csr_array(np.array([[3.0, 0.0], [0.0, 3.0]]))
    both = project(counts, Clusters.from_labels(["both", "both"]), rho).toarray()
    gap = float(np.linalg.norm(both[0] - both[1]))
    text = (
        f"Two words in a cluster: projected counts (ρ, 0) and (0, ρ) are {gap:.4f}·ρ apart, the noise is scaled to "
        f"{scaled:.4f}·ρ."
    )
    return text, gap <= scaled * rho * (1 + 1e-12)


@check("exp-logistic")
def exp_logistic(effort: Effort, seed: int, statement: Experiment = PRINTED_EXPERIMENT) -> Finding:
    """The ε axis is wrong at small sampling rates; with pairs and true ε, diversity helps where privacy limits."""
    from elementdp.companion.experiments.logistic import Design, LogisticMethod, noise_for, true_epsilon

    facts = _logistic_recorded() if statement.sentences else []
    # The section's message is how the error falls with diversity at a given ε; a false one is more than bookkeeping.
    message = all(fact.holds for fact in facts if fact.role is Role.PRINTED and "diverse" in fact.text)
    design, q, epsilon = Design(), 0.05, 1.0
    method = LogisticMethod.ELEMENT_REPAIRED if statement.true_noise else LogisticMethod.ELEMENT_PRINTED
    sigma, pairs = (noise_for(m, design, q, epsilon) for m in (method, LogisticMethod.ELEMENT_REPAIRED))
    really = true_epsilon(method, design, q, sigma)
    band = true_epsilon(LogisticMethod.ELEMENT_REPAIRED, design, q, pairs)
    facts += [
        printed(
            f"Computed now: q = {q:g}, T = {design.steps}, claimed ε = {epsilon:g}: σ = {sigma:.4g}, and the true ε is "
            f"{really:.4g}.",
            really.low <= epsilon,
            promised_delta=paper_delta(design.users),
        ),
        repaired(
            f"Computed now: with pairs sampled σ = {pairs:.4g} suffices, true ε from {band:.4g}.",
            band.up <= epsilon and math.isfinite(pairs),
        ),
    ]
    return Finding(
        tuple(facts),
        "Sample (user, element) pairs and count with a true accountant: the ε on the axis is then right. Diversity "
        "lowers the element-private error where privacy limits it (small ε); at large ε, and without privacy, it does "
        "not. User-level error hardly changes with diversity when user-level means one cluster (K = 1).",
        Gap.ASSUMPTION if message else Gap.SUBSTANCE,
    )


def _logistic_recorded() -> list[Fact]:
    """The text's sentences, on the recorded run."""
    from elementdp.companion.experiments.logistic import LogisticPoint, Rate, sentences

    run = _recorded("logistic")
    if run is None:
        return []
    points = [LogisticPoint(**row) for row in run.rows("points")]
    return _facts(sentences(points, [Rate(**row) for row in run.rows("rates")]), "(n = 1,000, T = 200, recorded)")
