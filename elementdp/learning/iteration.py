"""One private run, step by step: sample, clip, add noise, descend; and its checkpoints."""

import math
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from elementdp.errors import ArgumentError
from elementdp.files import sha256_bytes
from elementdp.learning import checkpoint
from elementdp.learning._fast.general import Loss, trainable
from elementdp.learning.checkpoint import CheckpointError
from elementdp.learning.clipping import ClippedSum
from elementdp.learning.data import UserData
from elementdp.learning.descent import Polyak, descend, described, optimizer_of, scheduler_of
from elementdp.learning.draws import same_draws
from elementdp.learning.exact import ExactArithmetic
from elementdp.learning.loading import Loading
from elementdp.learning.noise import Arithmetic, FloatArithmetic
from elementdp.learning.plan import Noise, Plan, Target
from elementdp.learning.probing import equal_up_to_rounding, stirred
from elementdp.learning.randomness import Purpose, Randomness
from elementdp.learning.sampling import allocated, bounded, dealt, draw, users_per_step
from elementdp.learning.team import Team
from elementdp.privacy import Guarantee, Relation, Sampler, Unit, promise
from elementdp.privacy.accountant import Event

PROBED = 64
"""So many losses at most are stored in a checkpoint and compared when a run goes on."""
STATE = ("settings", "key", "step", "model", "losses", "optimizer", "scheduler", "average", "history")
"""What a run goes on from."""


@dataclass
class History:
    """What the data's owner may look at. None of it is private: do not publish it."""

    losses: list[float] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Task:
    """What a run is about: the model, the users' data, the loss, and the privacy wanted or the noise."""

    model: nn.Module
    data: UserData
    loss: Loss
    privacy: Target | Noise


class PrivateIteration:
    """The private iteration (Equation (15)) on this process's share of the users."""

    def __init__(self, task: Task, plan: Plan, seed: int | None, device: torch.device) -> None:
        model, data = task.model, task.data
        self.data, self.plan, self.device = data, plan, device
        self.event, self.delta, self.unit = plan.event(task.privacy), task.privacy.delta, task.privacy.unit
        if plan.sampler is Sampler.FIXED_USERS:
            users_per_step(plan.q, data.n_users)
        if self.event is not None and self.delta is not None and self.delta * data.n_users >= 1:
            raise ArgumentError(
                "delta", self.delta, f"below 1/n = {1 / data.n_users:.2g}: at 1/n a user may be published"
            )
        if plan.exact and device.type == "mps":
            raise ArgumentError("device", "mps", "cpu or cuda for noise='exact', whose sums are numbers of 64 bits")
        if plan.exact:
            self.arithmetic: Arithmetic = ExactArithmetic(plan.rho, self.sigma)
        else:
            self.arithmetic = FloatArithmetic(plan.rho, plan.correlation.weights)
        self.model = model.to(device)
        self.clipper = data.clipper(model, task.loss, plan)
        self.loss = _described(task.loss)
        self.clipper.measures = seed is None
        self.parameters = list(trainable(model).values())
        self.team = Team(device, plan.timeout)
        self.moves = described(plan, self.parameters)
        self.optimizer = optimizer_of(plan, self.parameters)
        self.scheduler = scheduler_of(plan, self.optimizer)
        self.average = Polyak(self.parameters)
        self.history = History()
        self.step = 0
        self.seed = seed
        self.random = self.team.shared(Randomness.secret() if seed is None else Randomness.seeded(seed))
        self.saved: tuple[Path, int] | None = None
        self.groups = data.groups(self.unit)
        if self.team.size > 1:
            self.model.load_state_dict(self.team.shared(_on_cpu(self.model.state_dict())))
        self.clipper.prepare(data.batch(self.unit, self._spread(self.plan.q)))
        self.clipper.method = self.team.shared(self.clipper.method)
        self.team.agree(self.settings() | {"steps": plan.steps})
        self._bound()

    def _spread(self, share: float) -> NDArray[np.int64]:
        """This share of the groups, and eight at least, from all over the data: what the model is looked at with."""
        count = min(len(self.groups), max(8, math.ceil(share * len(self.groups))))
        return np.unique(np.linspace(0, len(self.groups) - 1, count).round().astype(np.int64))

    def _bound(self) -> None:
        """Keep the groups that take part: of a user with too many elements a few, drawn once for the whole run.

        So is the order of the users, if there is one.
        """
        most = self.plan.elements_per_user if self.unit is Unit.ELEMENT else None
        self.kept = bounded(self.groups.user, most, self.random.stream(Purpose.BOUNDING))
        self.owners = self.groups.user[self.kept]
        self.places: tuple[int, NDArray[np.int64]] | None = None
        if self.plan.sampler is Sampler.FIXED_ORDER:
            self.batch = dealt(self.data.n_users, self.plan.batches, self.random.stream(Purpose.SAMPLING))[self.owners]

    def _seen(self, k: int) -> NDArray[np.int64]:
        """The groups of step k."""
        plan = self.plan
        if plan.sampler is Sampler.FIXED_ORDER:
            return np.asarray(self.kept[self.batch == (k - 1) % plan.batches])
        if plan.sampler is Sampler.ALLOCATED_PAIRS:
            return np.asarray(self.kept[self._allocated((k - 1) // plan.batches) == (k - 1) % plan.batches])
        stream = self.random.stream(Purpose.SAMPLING, k)
        return self.kept[draw(plan.sampler, plan.q, self.owners, self.data.n_users, stream)]

    def _allocated(self, epoch: int) -> NDArray[np.int64]:
        """The step of this epoch that each kept group enters; a function of the key, so a resumed run has it again."""
        if self.places is None or self.places[0] != epoch:
            stream = self.random.stream(Purpose.SAMPLING, epoch)
            self.places = epoch, allocated(len(self.kept), self.plan.batches, stream)
        return self.places[1]

    def advance(self) -> None:
        """One step."""
        plan, k = self.plan, self.step + 1
        chosen = self._seen(k)
        if self.team.size > 1:
            chosen = chosen[self.groups.user[chosen] % self.team.size == self.team.rank]
        step = plan.step(k)
        if k & (k - 1) == 0:  # steps 1, 2, 4, 8 …
            self.clipper.check(self.data.batch(self.unit, chosen))
        passes = self.random.stream(Purpose.PASSES, k)
        draws = [int.from_bytes(passes.words(4).tobytes(), "little") for _ in range(1 + self.team.size)]
        on_device = [self.device] if self.device.type == "cuda" else []
        with same_draws(draws[self.team.rank], on_device):  # dropout and the like
            found = self.arithmetic.sum(self.clipper, self.data.batch(self.unit, chosen), step)
        total = found.gradients
        if self.team.leads and self.event is not None:
            self.arithmetic.add_noise(total, self.event.sigma, self.random, k)
        self.team.add_up(total, k, self.how_to_resume())
        direction = [
            (tensor / (plan.q * self.data.n_users)).to(parameter.dtype)
            for tensor, parameter in zip(self.arithmetic.released(total), self.parameters, strict=True)
        ]
        # An optimizer may draw too: alike in all processes, and after a stop.
        with same_draws(draws[-1], on_device) if self.optimizer else nullcontext():
            descend(self.parameters, direction, step, plan.domain, self.optimizer)
            if self.scheduler is not None:
                self.scheduler.step()
        self.average.update(self.parameters)
        self._note(found, k)
        self.step = k

    def _note(self, found: ClippedSum, k: int) -> None:
        """Write down what the data's owner may see of this step."""
        count = float(len(found.norms))
        seen = torch.tensor([count, float(found.skipped), found.loss * count if count else 0.0])
        seen = seen.to(self.device)
        self.team.add_up([seen], k, self.how_to_resume())
        groups, skipped, loss = seen.tolist()
        self.history.groups.append(round(groups))
        self.history.skipped.append(round(skipped))
        self.history.losses.append(loss / groups if groups else float("nan"))

    @property
    def learning_rate(self) -> float:
        """The step size of the last step."""
        if self.optimizer is None:
            return self.plan.step(max(1, self.step))
        return float(self.optimizer.param_groups[0]["lr"])

    @property
    def sigma(self) -> float:
        """The noise in units of ρ; zero is no privacy."""
        return 0.0 if self.event is None else self.event.sigma

    def spent(self, steps: int) -> Guarantee:
        """The guarantee after ``steps`` steps: the upper end of what is known, never an estimate."""
        if self.event is None:
            return Guarantee(math.inf, self.delta or 0.0, self.unit, Relation.REPLACE, self.plan.sampler)
        assert self.delta is not None
        if steps == 0:
            return Guarantee(0.0, self.delta, self.unit, Relation.REPLACE, self.plan.sampler)
        return _spent(replace(self.event, steps=steps), self.delta)

    # ------------------------------------------------------------------------------------------------- checkpoints

    def settings(self) -> dict[str, Any]:
        """What has to agree between a checkpoint and the run that goes on from it."""
        plan = self.plan
        return self.moves | {
            "sampler": str(plan.sampler),
            "q": plan.q,
            "sigma": self.sigma,
            "delta": self.delta,
            "unit": str(self.unit),
            "elements_per_user": plan.elements_per_user,
            "seed": self.seed,
            "rho": plan.rho,
            "step_size": repr(plan.step_size),
            "domain": repr(plan.domain),
            "precision": str(plan.precision),
            "noise": str(plan.noise),
            "correlation": repr(plan.correlation),
            "layers": repr(self.model),
            "loss": self.loss,
            "model": str([checkpoint.kind(part) for part in self.model.state_dict().items()]),
            "trained": str(list(trainable(self.model))),
            "data": self.data.fingerprint,
            "processes": self.team.size,
            "device": self.device.type,
            "threads": torch.get_num_threads(),  # torch's own products share their sums out among them
            "method": str(self.clipper.method),  # methods agree up to rounding only, and repeated noise would show it
            "torch": str(torch.__version__),
            "elementdp": checkpoint.written_by(),
        }

    def save(self, path: Path, *, first: bool = False) -> None:
        """Write a checkpoint, which has to be ``first`` of its name if so; only the leading process does."""
        loading = self.clipper.loading
        if loading is Loading.OTHER or (loading is Loading.DRAWN and self.data.workers):
            raise CheckpointError(
                f"no checkpoint can be kept in {path}: loading a row once more gives {loading.value}, and with workers "
                "the order of draws is not fixed. A run that goes on would add the same noise to other sums. Let rows "
                "draw from torch, numpy or Python with workers=0, or train without a checkpoint"
            )
        if self.team.leads:
            spent = self.spent(self.step)
            state: dict[str, Any] = {
                "settings": self.settings(),
                "key": self.random.key.hex(),
                "step": self.step,
                "spent": (spent.epsilon, spent.delta),
                "model": self.model.state_dict(),
                "losses": self._probe(),
                "optimizer": self.optimizer.state_dict() if self.optimizer else {},
                "scheduler": self.scheduler.state_dict() if self.scheduler else {},
                "average": (self.average.count, self.average.values),
                "history": vars(self.history),
            }
            checkpoint.save(path, state, first=first)
        self.saved = (path, self.step)

    def resume(self, path: Path) -> bool:
        """Go on from a checkpoint, if there is one."""
        data = self.team.shared(path.read_bytes() if self.team.leads and path.exists() else None)
        if data is None:
            return False
        state = checkpoint.unpack(data, str(path), STATE)
        self.clipper.go_on_with(str(state["settings"].get("method")))
        self.clipper.method = self.team.shared(self.clipper.method)
        checkpoint.same_settings(str(path), state["settings"], self.settings())
        checkpoint.refuse_forged(str(path), state, self.model.state_dict(), self.average.values)
        if state["step"] > self.plan.steps:
            raise CheckpointError(f"{path} holds step {state['step']}: ask for as many steps, or for more")
        self.random, self.step = Randomness(bytes.fromhex(state["key"])), state["step"]
        self.model.load_state_dict(state["model"])
        self._same_losses(path, state["losses"])
        for name, moving in (("optimizer", self.optimizer), ("scheduler", self.scheduler)):
            try:
                if moving is not None:
                    moving.load_state_dict(state[name])
            except Exception as error:
                raise CheckpointError(f"{path} holds what is no state of this {name} ({error})") from error
        self._bound()
        self.average.count = state["average"][0]
        self.average.values = [value.to(self.device) for value in state["average"][1]]
        self.history = History(**state["history"])
        self.saved = (path, self.step)
        return True

    def _probe(self) -> list[float]:
        """Losses of some rows with the parameters as they are, dropout and all, by the same draws each time.

        Parameters at zero are moved: behind them nothing of the model would be seen.
        """
        batch = self.data.batch(self.unit, self._spread(min(1.0, PROBED / max(1, len(self.groups)))))
        total = sum(batch.sizes)
        rows = torch.linspace(0, total - 1, min(PROBED, self.clipper.rows, total), dtype=torch.float64)
        if not len(rows):
            return []
        with stirred(self.parameters), same_draws():
            losses = self.clipper.losses(batch, rows.round().long()).detach()
        return [float(loss) for loss in losses]

    def _same_losses(self, path: Path, stored: list[float]) -> None:
        """Raise if the model or the loss computes something else than when the checkpoint was written."""
        before = [torch.tensor(self._probe()) for _ in range(2)]
        if torch.equal(*before) and not equal_up_to_rounding(before[0], torch.tensor(stored)):
            raise CheckpointError(
                f"{path} is from a run whose model or loss gives other losses for the same rows and parameters: "
                "the same noise on other sums would give both away. Use another file"
            )

    def how_to_resume(self) -> str:
        """What to do when another process is lost."""
        if self.saved is None:
            return "there is no checkpoint: start again"
        return (
            f"the checkpoint {self.saved[0]} holds step {self.saved[1]}: start again with the same arguments to go on"
        )


def _on_cpu(state: dict[str, Any]) -> dict[str, Any]:
    return {name: value.cpu() if isinstance(value, torch.Tensor) else value for name, value in state.items()}


def _described(loss: Loss) -> str:
    """What can be compared of a loss that is a module: its settings, and its weights of classes, say."""
    if not isinstance(loss, nn.Module):
        return "a function"
    plain = {name: value for name, value in vars(loss).items() if isinstance(value, bool | int | float | str)}
    weights = {name: sha256_bytes(str(value.tolist()).encode())[:16] for name, value in loss.state_dict().items()}
    return f"{loss!r} {plain | weights}"


@lru_cache(maxsize=256)  # progress, checkpoints and results ask for the same steps
def _spent(event: Event, delta: float) -> Guarantee:
    return promise(event, delta)
