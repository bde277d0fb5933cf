"""``train``: a model, users' data in elements and a target go in; a private model and its guarantee come out."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor, nn

from elementdp.errors import ArgumentError, at_least, nonnegative, one_of
from elementdp.learning.budget import Budget, Target
from elementdp.learning.checkpoint import writable
from elementdp.learning.clipping import Method
from elementdp.learning.data import UserData
from elementdp.learning.domain import Domain
from elementdp.learning.general import Loss, trainable
from elementdp.learning.iteration import StepSize
from elementdp.learning.run import History, OptimizerMaker, Plan, Run
from elementdp.learning.support import present
from elementdp.privacy import Guarantee, Sampler, Unit
from elementdp.privacy.digits import rounded_up


@dataclass(frozen=True)
class Trained:
    """A trained model, the guarantee it has, and the noise that bought it.

    ``model`` holds the last iterate; ``average`` the Polyak average by parameter name, for
    ``model.load_state_dict(trained.average, strict=False)``. Both are covered by ``guarantee``; ``history`` is not.
    """

    model: nn.Module
    guarantee: Guarantee
    sigma: float
    average: dict[str, Tensor]
    history: History
    method: Method | None

    @property
    def skipped(self) -> int:
        """Group gradients that were not finite and added nothing, over all steps."""
        return sum(self.history.skipped)


def train(
    model: nn.Module,
    data: UserData,
    *,
    loss: Loss,
    rho: float,
    steps: int,
    q: float = 1.0,
    target: Target | None = None,
    sigma: float | None = None,
    unit: Unit | str | None = None,
    delta: float | None = None,
    sampler: Sampler | str = Sampler.POISSON_PAIRS,
    elements_per_user: int | None = None,
    step_size: StepSize | float = 0.1,
    domain: Domain | None = None,
    optimizer: OptimizerMaker | None = None,
    method: Method | str = Method.AUTO,
    precision: torch.dtype | None = None,
    seed: int | None = None,
    device: str | torch.device = "cpu",
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 50,
    progress: bool = True,
    on_step: Callable[[int, nn.Module], None] | None = None,
) -> Trained:
    """Run the private iteration (eqn:private-element-sgd) for ``steps`` steps.

    Give either ``target`` (σ is calibrated by the accountant that fits the sampler) or ``sigma`` with ``unit`` and
    ``delta``; σ = 0 with ``rho=math.inf`` is training without privacy. ``loss(outputs, targets)`` returns one number
    per example. The unit decides what is averaged and clipped: everything of one user in one element, or everything
    of one user. Without ``seed`` the draws come from the operating system; a published seed gives the noise away.
    Called under ``torchrun``, processes share the users. ``on_step(k, model)`` sees every iterate.
    """
    where = present(device)
    one_of("method", method, Method)
    at_least("checkpoint_every", checkpoint_every, 1)
    if seed is not None:
        at_least("seed", seed, 0)
    path = None if checkpoint is None else Path(checkpoint)
    if path is not None:
        writable(path)
    sampler = Sampler(one_of("sampler", sampler, Sampler))
    budget = _budget(data, target, sigma, unit, delta, sampler, q, steps, elements_per_user)
    if not isinstance(rho, int | float) or not rho > 0:
        raise ArgumentError("rho", rho, "> 0 (infinity for no clipping)")
    if math.isinf(rho) and budget.sigma > 0:
        raise ArgumentError("rho", rho, "finite: noise in units of ρ protects only what is clipped to ρ")
    if optimizer is not None and domain is not None:
        raise ArgumentError("optimizer", optimizer, "left out when Θ is bounded: Algorithm 1 projects a plain step")
    size = step_size if isinstance(step_size, StepSize) else StepSize(step_size)
    plan = Plan(budget, rho, size, domain, optimizer, Method(method), precision)
    model.train()
    run = Run(model, data, loss, plan, seed, where)
    if path is not None:
        run.resume(path)
    with _bar(run, progress and run.team.leads) as show:
        while run.step < steps:
            run.advance()
            if path is not None and (run.step % checkpoint_every == 0 or run.step == steps):
                run.save(path)
            show()
            if on_step is not None:
                on_step(run.step, model)
    average = dict(zip(trainable(model), run.average.values, strict=True))
    return Trained(model, budget.spent(run.step), budget.sigma, average, run.history, run.clipper.method)


def _budget(
    data: UserData,
    target: Target | None,
    sigma: float | None,
    unit: Unit | str | None,
    delta: float | None,
    sampler: Sampler,
    q: float,
    steps: int,
    elements_per_user: int | None,
) -> Budget:
    if (target is None) == (sigma is None):
        raise ArgumentError("target", target, "given, or sigma instead, and not both")
    if elements_per_user is not None and data.most_elements > elements_per_user:
        raise ArgumentError("elements_per_user", elements_per_user, f"at least what users have, {data.most_elements}")
    if target is not None:
        if unit is not None or delta is not None:
            raise ArgumentError("unit" if unit is not None else "delta", unit or delta, "left to the target")
        budget = Budget(sampler, q, 1.0, steps, target.delta, target.unit, elements_per_user)
        return budget.calibrated(target.epsilon)
    assert sigma is not None
    nonnegative("sigma", sigma)
    if delta is None and sigma > 0:
        raise ArgumentError("delta", delta, "given along with sigma: without it there is no ε to report")
    budget = Budget(
        sampler, q, sigma, steps, delta or 1e-6, Unit(one_of("unit", unit or Unit.ELEMENT, Unit)), elements_per_user
    )
    if sigma > 0:
        replace(budget, steps=1).spent(1)  # refuse a combination without a proof before any work
    return budget


@contextmanager
def _bar(run: Run, visible: bool) -> Iterator[Callable[[], None]]:
    """A bar with the loss and the ε spent so far, rounded up to the next twentieth of the run."""
    if not visible:
        yield lambda: None
        return
    budget = run.plan.budget

    def epsilon() -> float:
        grid = max(1, budget.steps // 20)
        return budget.spent(min(budget.steps, -(-run.step // grid) * grid)).epsilon

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=False) as bar:
        task = bar.add_task("", total=budget.steps, completed=run.step)

        def show() -> None:
            recent = [loss for loss in run.history.losses[-20:] if math.isfinite(loss)]
            loss = sum(recent) / len(recent) if recent else math.nan
            bar.update(
                task, completed=run.step, description=f"loss {loss:.4g} (not private)  ε ≤ {rounded_up(epsilon())}"
            )

        yield show
