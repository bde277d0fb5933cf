"""Two processes: the same result as one, and a clear end when one of them dies."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import torch
from learning.worker import run

from elementdp.learning import checkpoint as files

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


def test_a_lost_process_stops_the_run_and_leaves_the_checkpoint(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    team = [
        subprocess.Popen(
            [sys.executable, *WORKER, str(tmp_path), "lost"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)),
        )
        for rank in (0, 1)
    ]
    output = [process.communicate(timeout=240) for process in team]
    assert team[1].returncode == 7
    assert team[0].returncode == 3, output[0][1]
    assert "died" in output[0][0]
    assert "lost.ckpt holds step 4" in output[0][0]
    assert files.unpack((tmp_path / "lost.ckpt").read_bytes(), "lost")["step"] == 4
    assert not list(tmp_path.glob("*.part"))
