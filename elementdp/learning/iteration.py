"""One private run, step by step: sample, clip, add noise, descend; and its checkpoints."""

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from elementdp.learning import checkpoint
from elementdp.learning._fast.general import Loss, trainable
from elementdp.learning.data import UserData
from elementdp.learning.descent import Polyak, descend
from elementdp.learning.noise import add_noise
from elementdp.learning.plan import Noise, Plan, Target
from elementdp.learning.randomness import Purpose, Randomness
from elementdp.learning.sampling import draw, users_per_step
from elementdp.learning.team import Team
from elementdp.privacy import Guarantee, Relation, Sampler, SubsampledGaussian, promise


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
    """The private iteration (eqn:private-element-sgd) on this process's share of the users."""

    def __init__(self, task: Task, plan: Plan, seed: int | None, device: torch.device) -> None:
        model, data = task.model, task.data
        self.data, self.plan, self.device = data, plan, device
        self.event, self.delta, self.unit = plan.event(task.privacy), task.privacy.delta, task.privacy.unit
        if plan.sampler is Sampler.FIXED_USERS:
            users_per_step(plan.q, data.n_users)
        self.model = model.to(device)
        self.clipper = data.clipper(model, task.loss, plan)
        self.parameters = list(trainable(model).values())
        self.team = Team(device)
        self.optimizer = plan.optimizer(self.parameters) if plan.optimizer else None
        self.average = Polyak(self.parameters)
        self.history = History()
        self.step = 0
        self.seed = seed
        self.random = self.team.shared(Randomness.secret() if seed is None else Randomness.seeded(seed))
        self.saved: tuple[Path, int] | None = None
        self.groups = data.groups(self.unit)
        self.clipper.prepare(data.batch(self.unit, self._spread()))
        if self.team.size > 1:
            self.model.load_state_dict(self.team.shared({k: v.cpu() for k, v in self.model.state_dict().items()}))

    def _spread(self) -> NDArray[np.int64]:
        """Groups from all over the data, as many as a step has: what the model is looked at with."""
        count = min(len(self.groups), max(8, math.ceil(self.plan.q * len(self.groups))))
        return np.unique(np.linspace(0, len(self.groups) - 1, count).round().astype(np.int64))

    def advance(self) -> None:
        """One step."""
        plan, k = self.plan, self.step + 1
        chosen = draw(plan.sampler, plan.q, self.groups, self.data.n_users, self.random.stream(Purpose.SAMPLING, k))
        if self.team.size > 1:
            chosen = chosen[self.groups.user[chosen] % self.team.size == self.team.rank]
        step = plan.step(k)
        if k & (k - 1) == 0:  # steps 1, 2, 4, 8 …
            self.clipper.check(self.data.batch(self.unit, chosen))
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
            passes = self.random.stream(Purpose.PASSES, k).words(self.team.size)
            torch.manual_seed(int(passes[self.team.rank] >> np.uint64(1)))  # dropout and the like
            found = self.clipper(self.data.batch(self.unit, chosen), step)
        total = found.gradients
        if self.team.leads and self.event is not None:
            add_noise(total, plan.rho * self.event.sigma, self.random.stream(Purpose.NOISE, k))
        count = float(len(found.norms))
        seen = torch.tensor([count, float(found.skipped), found.loss * count if count else 0.0], dtype=torch.float64)
        seen = seen.to(total[0].dtype).to(self.device)
        self.team.add_up([*total, seen], k, self._how_to_resume())
        direction = [tensor / (plan.q * self.data.n_users) for tensor in total]
        descend(self.parameters, direction, step, plan.domain, self.optimizer)
        self.average.update(self.parameters)
        groups, skipped, loss = seen.tolist()
        self.history.groups.append(round(groups))
        self.history.skipped.append(round(skipped))
        self.history.losses.append(loss / groups if groups else float("nan"))
        self.step = k

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
        state = self.model.state_dict()
        maker = None
        if self.optimizer is not None:
            maker = f"{type(self.optimizer).__name__} {sorted((k, str(v)) for k, v in self.optimizer.defaults.items())}"
        return {
            "sampler": str(plan.sampler),
            "q": plan.q,
            "sigma": self.sigma,
            "steps": plan.steps,
            "delta": self.delta,
            "unit": str(self.unit),
            "elements_per_user": plan.elements_per_user,
            "seed": self.seed,
            "rho": plan.rho,
            "step_size": repr(plan.step_size),
            "domain": repr(plan.domain),
            "optimizer": maker,
            "precision": str(plan.precision),
            "model": str([(k, tuple(v.shape), str(v.dtype)) for k, v in state.items()]),
            "trained": str(list(trainable(self.model))),
            "data": self.data.fingerprint,
            "processes": self.team.size,
            "device": self.device.type,
            "method": str(self.clipper.method),  # methods agree up to rounding only, and repeated noise would show it
            "torch": str(torch.__version__),
        }

    def save(self, path: Path) -> None:
        """Write a checkpoint; only the leading process does."""
        if self.team.leads:
            spent = self.spent(self.step)
            state = {
                "settings": self.settings(),
                "key": self.random.key.hex(),
                "step": self.step,
                "spent": (spent.epsilon, spent.delta),
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict() if self.optimizer else {},
                "average": (self.average.count, self.average.values),
                "history": vars(self.history),
            }
            checkpoint.save(path, state)
        self.saved = (path, self.step)

    def resume(self, path: Path) -> bool:
        """Go on from a checkpoint, if there is one."""
        data = self.team.shared(path.read_bytes() if self.team.leads and path.exists() else None)
        if data is None:
            return False
        state = checkpoint.unpack(data, str(path))
        checkpoint.same_settings(str(path), state["settings"], self.settings())
        self.random, self.step = Randomness(bytes.fromhex(state["key"])), state["step"]
        self.model.load_state_dict(state["model"])
        if self.optimizer is not None:
            self.optimizer.load_state_dict(state["optimizer"])
        self.average.count = state["average"][0]
        self.average.values = [value.to(self.device) for value in state["average"][1]]
        self.history = History(**state["history"])
        self.saved = (path, self.step)
        return True

    def _how_to_resume(self) -> str:
        if self.saved is None:
            return "there is no checkpoint: start again"
        return (
            f"the checkpoint {self.saved[0]} holds step {self.saved[1]}: start again with the same arguments to go on"
        )


@lru_cache(maxsize=256)  # progress, checkpoints and results ask for the same steps
def _spent(event: SubsampledGaussian, delta: float) -> Guarantee:
    return promise(event, delta)
