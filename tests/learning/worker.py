"""One process of a distributed run: ``worker.py FOLDER SCENARIO``."""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import torch
from learning.running import trained
from torch import nn

from elementdp.learning import LostProcessError, TeamError, UserData
from elementdp.privacy import Correlation

ORDERED = {"sampler": "fixed-order", "q": 0.25, "correlation": Correlation.inverse_root(3)}
ALLOCATED = {"sampler": "allocated-pairs", "q": 0.25}


def problem():
    torch.manual_seed(0)
    inputs = torch.randn(80, 5, dtype=torch.float64)
    data = UserData.of(inputs, (inputs.sum(1) > 0).long(), torch.arange(80) % 11, torch.arange(80) % 6, 11)
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 2)).double(), data


def run(path=None, on_step=None, **options):
    options = {"rho": 0.5, "steps": 8, "q": 0.5, "sigma": 0.7, "delta": 1e-5, "step_size": 0.5, **options}
    loss = nn.CrossEntropyLoss(reduction="none")
    return trained(*problem(), loss, seed=2, checkpoint=path, checkpoint_every=2, on_step=on_step, **options)


def main(folder: Path, scenario: str) -> None:
    rank = int(os.environ["RANK"])
    if scenario == "shards":
        model, data = problem()
        half = np.flatnonzero(data.users % 2 == rank)
        inputs, targets = data.fetch(torch.from_numpy(half))
        mine = UserData.of(inputs, targets, data.users[half], data.elements[half], 11)
        try:
            trained(model, mine, nn.CrossEntropyLoss(reduction="none"), rho=0.5, steps=2, sigma=0.7, delta=1e-5)
        except TeamError as error:
            print(error, flush=True)
            os._exit(3)
    if scenario == "equal":
        done = run(folder / "run.ckpt")
        again = run(folder / "run.ckpt")  # every process goes on from the leader's file
        torch.save([p.detach() for p in run(noise="exact").model.parameters()], folder / f"exact{rank}.pt")
        for name, options in (("ordered", ORDERED), ("allocated", ALLOCATED)):
            torch.save([p.detach() for p in run(**options).model.parameters()], folder / f"{name}{rank}.pt")
        assert all(torch.equal(a, b) for a, b in zip(done.model.parameters(), again.model.parameters(), strict=True))
        torch.save([p.detach() for p in done.model.parameters()], folder / f"{rank}.pt")
        torch.save(done.history.groups, folder / f"groups{rank}.pt")
        seen = []  # only the leader has a file and a callback, as scripts do that log once
        options = {"path": folder / "alone.ckpt", "on_step": lambda step: seen.append(step.k) or step.k == 3}
        some = run(**(options if rank == 0 else {}))
        assert len(some.history.losses) == 3 and seen == ([1, 2, 3] if rank == 0 else [])
        torch.distributed.destroy_process_group()
        return

    def on_step(step):
        if rank == 1 and step.k == 5:
            os._exit(7) if scenario == "lost" else os.kill(os.getpid(), signal.SIGSTOP)

    try:
        run(folder / "lost.ckpt", on_step, timeout=600.0 if scenario == "lost" else 4.0)
    except LostProcessError as error:
        print(error, flush=True)
        os._exit(3)  # no goodbye to a process that is gone


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
