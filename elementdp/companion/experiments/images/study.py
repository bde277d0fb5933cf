"""Every variant of a plan: tuned, then run on users and test photos that the tuning has not seen."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from elementdp.companion.experiments.images.plans import ImagePlan
from elementdp.companion.experiments.images.running import HERE, Compute, ImageTask, RunResult, run
from elementdp.companion.experiments.images.tuning import Place, tune
from elementdp.companion.experiments.images.variants import Accounting, Variant
from elementdp.privacy import Unit
from elementdp.privacy.digits import rounded_up


def study(
    task: ImageTask,
    plan: ImagePlan,
    variants: Sequence[Variant],
    report: Callable[[str], None] = lambda line: None,
    compute: Compute = HERE,
) -> list[RunResult]:
    """The results of every variant, repetition after repetition, each with what its tuning tried."""
    results = []
    places: dict[tuple[Unit, Accounting], Place] = {}
    for number, variant in enumerate(variants, start=1):
        kind, first = (variant.unit, variant.accounting), plan.schedule(variant)
        best = tune(
            task,
            variant,
            first,
            plan.choices(variant),
            plan.tuning_steps,
            factors=plan.rate_factors,
            compute=compute,
            start=places.get(kind),  # variants of one kind end near each other
        )
        places[kind] = best.place
        for repetition in range(plan.repetitions):
            until = round(plan.until * first.q / best.schedule.q)
            options = {"repetition": repetition, "evaluations": plan.evaluations, "until": until}
            found = run(task, variant, best.schedule, best.chosen, compute=compute, **options)
            tuning = 0.0 if repetition else round(best.seconds, 3)  # repetitions share it, so it counts once
            results.append(replace(found, tried=best.tried, whole=best.whole, tuning_seconds=tuning))
            report(
                f"{number}/{len(variants)} {variant.label}: {found.reached:.4f} (q = {found.q:g}, "
                f"σ = {found.sigma:.3g}, α = {found.step:.3g}, ρ = {found.rho:g}, "
                f"true ε ≤ {rounded_up(found.true_up)}, {found.seconds / found.steps:.3f} s a step)"
            )
    return results
