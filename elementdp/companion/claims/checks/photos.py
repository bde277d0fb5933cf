"""Sections 4.3 and 4.4: the legends' ε computed now at the paper's sizes, and what recorded runs decide."""

from elementdp.companion.claims.checks.experiments import PRINTED_EXPERIMENT, Experiment
from elementdp.companion.claims.ledger import Effort, check
from elementdp.companion.claims.verdict import Fact, Finding, Gap, Role, printed, repaired
from elementdp.privacy import Unit

RATES = {Effort.SMOKE: (0.01,), Effort.QUICK: (0.01, 0.05), Effort.PAPER: (0.002, 0.01, 0.05, 0.2)}
"""Sampling rates tried; the paper leaves q open."""

PAPER_STEPS = 40_000


def _legend(
    epsilon: float, k: int, clusters: int, users: int, rates: tuple[float, ...], statement: Experiment
) -> list[Fact]:
    """The legend's ε at the paper's own sizes, with the sampler the statement names, and with pairs sampled."""
    from elementdp.companion.experiments.images import Accounting, Schedule, Variant, noise_for, true_epsilon

    facts = []
    tried = Accounting.PAIRS if statement.true_noise else Accounting.PRINTED
    for q in rates:
        schedule = Schedule(100, q, PAPER_STEPS)
        for make, accounting in ((printed, tried), (repaired, Accounting.PAIRS)):
            variant = Variant(accounting, Unit.ELEMENT, epsilon, k, clusters, users)
            band = true_epsilon(variant, schedule)
            text = (
                f"Computed now: n = {users:,}, K = {clusters}, T = {PAPER_STEPS:,}, q = {q:g}, ε = {epsilon:g} "
                f"{accounting}: σ = {noise_for(variant, schedule):.4g}, true ε from {band:.4g}."
            )
            if make is repaired:
                facts.append(repaired(text, band.up <= epsilon))
            elif band.low > epsilon or band.up <= epsilon:  # a band that straddles the legend's ε decides nothing
                facts.append(printed(text, band.up <= epsilon, promised_delta=variant.delta))
    return facts


def _finding(name: str, facts: list[Fact], statement: Experiment) -> Finding:
    """The facts, those of the recorded run added; how many sentences it does not decide is said in the repair."""
    from elementdp.companion.experiments.images import recorded_results, section_sentences

    still = 0  # sentences that stay open
    runs, _ = recorded_results(name)
    if runs and statement.sentences:
        for row in section_sentences(name):
            if row.holds is None:
                still += 1
            else:
                role = Role.REPAIRED if row.repaired else Role.PRINTED
                facts.append(Fact(role, f"“{row.said}” (recorded): {row.found}.", row.holds))
    repair = (
        "Sample (user, element) pairs and count with a true accountant: the legend's ε is then right, with about the "
        "printed noise."
    )
    if still:
        repair += f" The recorded runs do not decide {still} sentences, which its page lists."
    return Finding(tuple(facts), repair, Gap.ASSUMPTION)


@check("exp-flickr")
def exp_flickr(effort: Effort, seed: int, statement: Experiment = PRINTED_EXPERIMENT) -> Finding:
    """The legend's ε is far below the true one when users are sampled; pair sampling makes it right."""
    return _finding("photos", _legend(3.0, 100, 500, 8_000, RATES[effort], statement), statement)


@check("exp-cifar")
def exp_cifar(effort: Effort, seed: int, statement: Experiment = PRINTED_EXPERIMENT) -> Finding:
    """The same ε is wrong in the same way; how accurate training is at the paper's size needs the paper's steps."""
    return _finding("cifar", _legend(3.0, 30, 100, 8_000, RATES[effort], statement), statement)
