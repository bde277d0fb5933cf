"""``train``: a model, users' data in elements and a target go in; a private model and its guarantee come out."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor, nn

from elementdp.errors import ArgumentError, at_least
from elementdp.learning._fast.general import Loss, trainable
from elementdp.learning.checkpoint import Checkpoint
from elementdp.learning.data import UserData
from elementdp.learning.held import Held
from elementdp.learning.iteration import History, PrivateIteration, Task
from elementdp.learning.models import present, set_training
from elementdp.learning.passes import Method
from elementdp.learning.plan import Noise, Plan, Target
from elementdp.privacy import Guarantee
from elementdp.privacy.digits import rounded_up


@dataclass(frozen=True)
class Trained:
    """A trained model, the guarantee it has, and the noise that bought it.

    ``model`` holds the last iterate; ``average`` the Polyak average by parameter name, for
    ``model.load_state_dict(trained.average, strict=False)``. Both are covered by ``guarantee``; ``history`` is not. A
    run with a ``seed`` repeats, noise and all, and protects no one: ``str`` says so.
    """

    model: nn.Module
    guarantee: Guarantee
    sigma: float
    seed: int | None
    average: dict[str, Tensor]
    history: History
    method: Method | None

    def __str__(self) -> str:
        if self.seed is None:
            return str(self.guarantee)
        return f"{self.guarantee}, with a seed: the run can be repeated, noise and all, and protects no one"

    @property
    def skipped(self) -> int:
        """Group gradients that were not finite and added nothing, over all steps."""
        return sum(self.history.skipped)


@dataclass(frozen=True, eq=False)
class Step:
    """What a callback sees after step ``k``. The loss is not private; the model is, with the guarantee ``spent``."""

    k: int
    model: nn.Module
    loss: float
    learning_rate: float
    run: PrivateIteration = field(repr=False)

    @property
    def spent(self) -> Guarantee:
        """The guarantee of the steps so far."""
        return self.run.spent(self.k)


def train(
    model: nn.Module,
    data: UserData,
    *,
    loss: Loss,
    privacy: Target | Noise,
    plan: Plan,
    seed: int | None = None,
    device: str | torch.device = "cpu",
    checkpoint: Checkpoint | str | Path | None = None,
    progress: bool = True,
    on_step: Callable[[Step], object] | None = None,
) -> Trained:
    """Train ``model`` by the private iteration (Equation (15)). Under ``torchrun`` processes share the users.

    Args:
        model: any torch model whose examples do not meet each other; it is trained in place.
        data: the users' rows, each with a user and an element.
        loss: ``loss(outputs, targets)`` returns one number for each example.
        privacy: a :class:`Target`, for which the accountant that fits the sampler finds the noise, or a :class:`Noise`.
        plan: steps, sampling, clipping and step sizes.
        seed: repeats a run, noise and all, which then protects no one. Without it draws come from a secret key.
        device: where the model is trained.
        checkpoint: a file from which a stopped run goes on, and a finished one with more steps. It is as secret as the
            data.
        progress: whether a bar shows the loss and the ε spent.
        on_step: sees every :class:`Step` and changes nothing; it returns None or False, or True to end the run there,
            with the guarantee of the steps done. That holds for a rule that looks at neither model nor loss; see the
            chapter's pitfalls for others.

    Returns:
        The model, its guarantee, the noise, the average of the iterates, and a history that is not private.

    Raises:
        ArgumentError: for an argument out of range; NoGuaranteeError: for a unit and sampler without a proof.
        ModelError: for a model that mixes examples or keeps what it has seen.
        CheckpointError: for a checkpoint that is damaged or from another run.

    >>> x, row = torch.randn(40, 3), torch.arange(40)
    >>> data = UserData.of(x, x.sum(1), users=row // 4, elements=row % 2, n_users=10)
    >>> square = lambda outputs, targets: (outputs[:, 0] - targets).square()
    >>> plan = Plan(steps=20, q=0.1, rho=1.0)
    >>> done = train(nn.Linear(3, 1), data, loss=square, privacy=Target(2, delta=1e-3), plan=plan, progress=False)
    >>> print(done.guarantee.unit.words, done.guarantee.epsilon <= 2)
    one element of one user True
    """
    _refuse_types(model, data, plan, loss, on_step)
    seed = None if seed is None else at_least("seed", seed, 0)
    kept = checkpoint if isinstance(checkpoint, Checkpoint | None) else Checkpoint(checkpoint)
    if kept is not None:
        kept.writable()
    where = present(device)
    set_training(model)
    run = PrivateIteration(Task(model, data, loss, privacy), plan, seed, where)
    _steps(run, kept, progress, on_step)
    average = dict(zip(trainable(model), run.average.values, strict=True))
    return Trained(model, run.spent(run.step), run.sigma, seed, average, run.history, run.clipper.method)


def _refuse_types(model: object, data: object, plan: object, loss: object, on_step: object) -> None:
    """Raise for an argument of a wrong type."""
    for name, value, kind in (("model", model, nn.Module), ("data", data, UserData), ("plan", plan, Plan)):
        if not isinstance(value, kind):
            raise ArgumentError(name, value, f"a {kind.__name__}")
    for name, function in (("loss", loss), ("on_step", on_step)):
        if not callable(function) and (name, function) != ("on_step", None):
            raise ArgumentError(name, function, "a function")


def _steps(
    run: PrivateIteration,
    checkpoint: Checkpoint | None,
    progress: bool,
    on_step: Callable[[Step], object] | None,
) -> None:
    """All steps that are left, or fewer if a callback says so. The leader alone may have a file and a callback."""
    checkpoint = run.team.shared(checkpoint)
    if checkpoint is not None and not run.resume(checkpoint.path):
        # The key, before it is used: with a new one the first steps would be released twice.
        run.save(checkpoint.path, first=True)
    stop = run.step >= run.plan.steps
    with _bar(run, progress and run.team.leads) as show:
        while not stop:
            run.advance()
            show()
            stop = run.step >= run.plan.steps
            if checkpoint is not None and (stop or run.step % checkpoint.every == 0):
                run.save(checkpoint.path)
            if _told(run, on_step) and not stop:
                stop = True
                if checkpoint is not None:
                    run.save(checkpoint.path)


def _told(run: PrivateIteration, on_step: Callable[[Step], object] | None) -> bool:
    """Whether the callback ends the run: the leader's decides. Layers are put back into the mode they were in."""
    answer: object = None
    if on_step is not None:
        modes = {module: module.training for module in run.model.modules()}
        held, settings = Held(run.model, values=True), _settings(run)
        answer = on_step(Step(run.step, run.model, run.history.losses[-1], run.learning_rate, run))
        for module, mode in modes.items():
            module.training = mode
        if name := held.new_gradient():
            raise ArgumentError(
                "on_step",
                f"a function that leaves a gradient without noise in {name}.grad",
                "one that calls torch.autograd.grad, or model.zero_grad() after backward(): the model will be released",
            )
        if _settings(run) != settings or held.changed():
            name = held.changed() or "the settings of a layer or of the optimizer"
            raise ArgumentError(
                "on_step",
                f"a function that changes {name}",
                "one that looks at the run and leaves it as it is: a run that goes on from a checkpoint would repeat "
                "its noise on another model, and give both away (a domain keeps parameters within bounds, a scheduler "
                "changes the learning rate)",
            )
    return run.team.shared(_yes(answer), f"at step {run.step}; {run.how_to_resume()}")


def _yes(answer: object) -> bool:
    """Whether a callback has returned True: Python's, numpy's or torch's. It has to return True, False or None."""
    if isinstance(answer, np.ndarray | np.generic | Tensor) and answer.ndim == 0:
        answer = answer.item()
    if answer is not None and not isinstance(answer, bool):
        raise ArgumentError(
            "on_step", f"a function that returns {answer!r}", "one that returns True to end the run, else False or None"
        )
    return bool(answer)


def _settings(run: PrivateIteration) -> str:
    """What layers say of themselves, and what the optimizer was told, its learning rate above all, and keeps."""
    groups = [] if run.optimizer is None else run.optimizer.param_groups
    told = [{name: value for name, value in group.items() if name != "params"} for group in groups]
    state = [] if run.optimizer is None else [value for one in run.optimizer.state.values() for value in one.values()]
    kept = [(id(value), value._version) if isinstance(value, Tensor) else value for value in state]
    return repr((told, kept, run.model))


@contextmanager
def _bar(run: PrivateIteration, visible: bool) -> Iterator[Callable[[], None]]:
    """A bar with the loss and the ε spent so far, rounded up to the next twentieth of the run."""
    if not visible:
        yield lambda: None
        return
    steps = run.plan.steps

    def epsilon() -> float:
        grid = max(1, steps // 20)
        return run.spent(min(steps, -(-run.step // grid) * grid)).epsilon

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=False) as bar:
        task = bar.add_task("", total=steps, completed=run.step)

        def show() -> None:
            recent = [loss for loss in run.history.losses[-20:] if math.isfinite(loss)]
            loss = sum(recent) / len(recent) if recent else math.nan
            seeded = "" if run.seed is None else "  seeded: protects no one"
            description = f"loss {loss:.4g} (not private)  ε ≤ {rounded_up(epsilon())}{seeded}"
            bar.update(task, completed=run.step, description=description)

        yield show
