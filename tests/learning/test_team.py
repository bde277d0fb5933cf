"""Two processes: the same result as one, and a clear end when one of them dies."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from learning.worker import ALLOCATED, ORDERED, run

from elementdp.learning import LostProcessError
from elementdp.learning import checkpoint as files
from elementdp.learning.team import Team

WORKER = [str(Path(__file__).with_name("worker.py"))]


def environment(**extra):
    path = os.pathsep.join(filter(None, sys.path))
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path, **extra}


def test_two_processes_equal_one(tmp_path):
    """By torchrun, as a user would: users are sharded, noise is added once."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*launcher, *WORKER, str(tmp_path), "equal"],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    alone = run()
    ranks = [torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1)]
    for one, first, second in zip(alone.model.parameters(), *ranks, strict=True):
        assert torch.equal(first, second)
        assert torch.allclose(one, first, rtol=1e-12, atol=1e-14)
    assert torch.load(tmp_path / "groups1.pt") == alone.history.groups
    for name, options in (("ordered", ORDERED), ("allocated", ALLOCATED)):
        for one, other in zip(run(**options).model.parameters(), torch.load(tmp_path / f"{name}1.pt"), strict=True):
            assert torch.allclose(one, other, rtol=1e-12, atol=1e-14)
    exact = run(noise="exact")
    for one, other in zip(exact.model.parameters(), torch.load(tmp_path / "exact1.pt"), strict=True):
        assert torch.equal(one, other)  # integers are added without rounding, by any number of processes


def two_processes(tmp_path, scenario):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return [
        subprocess.Popen(
            [sys.executable, *WORKER, str(tmp_path), scenario],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)),
        )
        for rank in (0, 1)
    ]


def test_processes_with_shards_of_their_own_are_told_so(tmp_path):
    """Each would take half of its half: users would be lost without a word."""
    team = two_processes(tmp_path, "shards")
    for process in team:
        output, errors = process.communicate(timeout=240)
        assert process.returncode == 3, errors
        assert "differ in data" in output


def test_a_process_that_stops_answering_is_given_up_after_the_timeout(tmp_path):
    team = two_processes(tmp_path, "stopped")
    try:
        output, errors = team[0].communicate(timeout=240)
        assert team[0].returncode == 3, errors
        assert "stopped answering" in output
    finally:
        team[1].kill()
        team[1].communicate()


def test_a_lost_process_stops_the_run_and_leaves_the_checkpoint(tmp_path):
    team = two_processes(tmp_path, "lost")
    output = [process.communicate(timeout=240) for process in team]
    assert team[1].returncode == 7
    assert team[0].returncode == 3, output[0][1]
    assert "died" in output[0][0]
    assert "lost.ckpt holds step 4" in output[0][0]
    assert files.unpack((tmp_path / "lost.ckpt").read_bytes(), "lost")["step"] == 4
    assert [path.name for path in tmp_path.iterdir()] == ["lost.ckpt"]


def test_a_process_that_never_starts_is_a_lost_one(monkeypatch):
    def waits(*_, **__):
        raise torch.distributed.DistStoreError("Timed out after 61 seconds waiting for clients. 1/2 clients joined.")

    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(torch.distributed, "init_process_group", waits)
    with pytest.raises(LostProcessError, match="before all of them had started"):
        Team(torch.device("cpu"), 5.0)
