"""The page on large tables, as it is written there: arrays on a shared disk, and ``torchrun`` started on each machine.

Here the machines are two agents on this one that know of each other by their endpoint only.
"""

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from elementdp.learning import unpack_parquet

TRAIN = """
import atexit, os, sys
from pathlib import Path

import torch

from elementdp.learning import Checkpoint, Plan, Target, mapped_data, train

folder, result = map(Path, sys.argv[1:])


def once_broken(step):
    if os.environ.get("RANK") == "1" and step.k == 5 and not (folder / "died").exists():
        (folder / "died").touch()
        os._exit(1)


@atexit.register  # what is registered first is called last
def tell_whether_left():
    (folder / f"left-{os.environ.get('RANK')}").write_text(str(not torch.distributed.is_initialized()))


torch.manual_seed(int(os.environ.get("RANK", 0)))  # the first process gives its weights to the others
done = train(
    torch.nn.Linear(4, 2).double(),
    mapped_data(folder / "arrays", n_users=40),
    loss=torch.nn.CrossEntropyLoss(reduction="none"),
    privacy=Target(3, delta=1e-3),
    plan=Plan(steps=8, q=0.3, rho=1.0, timeout=60.0),
    seed=1,
    checkpoint=Checkpoint(result.with_suffix(".ckpt"), 2),
    progress=False,
    on_step=once_broken,
)
if os.environ.get("RANK", "0") == "0":
    torch.save(done.model.state_dict(), result)
"""


def shared_disk(folder: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 4))
    table = {"u": rng.integers(0, 40, 200), "e": rng.integers(0, 3, 200), "x": list(x), "y": (x[:, 0] > 0) + 0}
    pq.write_table(pa.table(table), folder / "rows.parquet")
    unpack_parquet(folder / "rows.parquet", folder / "arrays", user="u", element="e", inputs="x", targets="y")
    (folder / "train.py").write_text(TRAIN)


def test_two_machines_go_on_after_a_process_died_and_end_as_one_does(tmp_path: Path) -> None:
    shared_disk(tmp_path)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{probe.getsockname()[1]}"
    place = {
        **os.environ,
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"]
    torchrun += ["--rdzv-id", "test-7", "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint, "--max-restarts", "3"]
    script = [str(tmp_path / "train.py"), str(tmp_path)]
    # Into files: a process whose full pipe nobody reads would wait for ever.
    logs = [tmp_path / f"{number}.log" for number in range(2)]
    machines = []
    for log in logs:
        with log.open("w") as stderr:
            machines.append(subprocess.Popen([*torchrun, *script, str(tmp_path / "two.pt")], env=place, stderr=stderr))
    try:
        for machine in machines:
            machine.wait(240)
    except subprocess.TimeoutExpired:
        pytest.fail("\n".join(log.read_text() for log in logs))
    finally:
        for machine in machines:
            machine.kill()
    assert [machine.returncode for machine in machines] == [0, 0], [log.read_text() for log in logs]
    assert (tmp_path / "died").exists()
    # Else torch's threads abort about every twentieth process when it ends, and its machine waits for a restart.
    assert [(tmp_path / f"left-{rank}").read_text() for rank in range(2)] == ["True", "True"]
    subprocess.run([sys.executable, *script, str(tmp_path / "one.pt")], env=place, check=True)
    alone, together = (torch.load(tmp_path / f"{name}.pt") for name in ("one", "two"))
    assert all(torch.allclose(alone[name], together[name], rtol=1e-12, atol=1e-14) for name in alone)
