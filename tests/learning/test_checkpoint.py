"""Checkpoints: whole or not at all, bit-identical on resumption, refused when damaged or from another run."""

import itertools
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from learning.running import trained
from torch import nn
from torch.utils.data import Dataset, TensorDataset

from elementdp.errors import ArgumentError
from elementdp.learning import Checkpoint, CheckpointError, Method, Target, UserData, training
from elementdp.learning import checkpoint as files
from elementdp.learning.iteration import STATE, PrivateIteration
from elementdp.privacy import Correlation, Sampler


def problem(seed=0):
    torch.manual_seed(seed)
    inputs = torch.randn(60, 5)
    data = UserData.of(inputs, (inputs.sum(1) > 0).long(), torch.arange(60) % 12, torch.arange(60) % 7, 12)
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 6), nn.Dropout(0.3), nn.Tanh(), nn.Linear(6, 2)), data


def run(model, data, path=None, **options):
    options = {
        "rho": 1.0,
        "steps": 9,
        "q": 0.4,
        "sigma": 0.8,
        "delta": 1e-5,
        "seed": 3,
        "optimizer": lambda p: torch.optim.SGD(p, lr=0.3, momentum=0.9),
        "checkpoint_every": 2,
        **options,
    }
    return trained(model, data, nn.CrossEntropyLoss(reduction="none"), checkpoint=path, **options)


class KilledError(Exception):
    pass


def killer(at):
    def on_step(step):
        if step.k == at:
            raise KilledError

    return on_step


def same(one, two):
    return all(
        torch.equal(a, b) for a, b in zip(one.model.state_dict().values(), two.model.state_dict().values(), strict=True)
    )


@pytest.mark.parametrize("sampler", [sampler for sampler in Sampler if sampler is not Sampler.NONE])
def test_a_run_killed_at_any_step_resumes_bit_for_bit(tmp_path, sampler):
    q = 0.25 if sampler in (Sampler.FIXED_USERS, Sampler.FIXED_ORDER, Sampler.ALLOCATED_PAIRS) else 0.4
    correlation = Correlation.inverse_root(4 if sampler is Sampler.FIXED_ORDER else 1)
    whole = run(*problem(), sampler=sampler, q=q, correlation=correlation)
    for at in range(1, 10):
        path = tmp_path / f"{at}.ckpt"
        with pytest.raises(KilledError):
            run(*problem(), path, on_step=killer(at), sampler=sampler, q=q, correlation=correlation)
        resumed = run(*problem(), path, sampler=sampler, q=q, correlation=correlation)
        assert same(whole, resumed)
        assert all(torch.equal(whole.average[k], resumed.average[k]) for k in whole.average)
        assert resumed.history == whole.history
        assert resumed.guarantee == whole.guarantee


def test_without_a_seed_the_noise_goes_on_from_where_it_was(tmp_path):
    """The seed of a run started from the operating system's randomness is in the checkpoint, and never drawn again."""
    path = tmp_path / "run.ckpt"
    with pytest.raises(KilledError):
        run(*problem(), path, seed=None, on_step=killer(5))
    kept = path.read_bytes()
    first = run(*problem(), path, seed=None)
    path.write_bytes(kept)
    assert same(first, run(*problem(), path, seed=None))
    assert not same(first, run(*problem(), seed=None))


def test_steps_before_the_first_interval_are_not_released_with_other_noise(tmp_path):
    """The key is on file, for its owner only, before the first step is shown."""
    path = tmp_path / "run.ckpt"
    seen = []

    def on_step(step):
        seen.append([p.detach().clone() for p in step.model.parameters()])
        if len(seen) == 3:
            raise KilledError

    with pytest.raises(KilledError):
        run(*problem(), path, seed=None, checkpoint_every=50, on_step=on_step)
    assert files.unpack(path.read_bytes(), "run")["step"] == 0
    assert path.stat().st_mode & 0o777 == 0o600
    run(*problem(), path, seed=None, checkpoint_every=50, on_step=on_step)
    assert len(seen) == 3 + 9
    for first, again in zip(seen[:3], seen[3:6], strict=True):
        assert all(map(torch.equal, first, again))


def test_a_resumed_run_keeps_the_method_it_began_with(tmp_path, monkeypatch):
    """With exact noise the faster of two methods is taken, and a clock may say one thing today and another tomorrow."""

    def under(power, **options):
        ticks = itertools.count(1)
        with monkeypatch.context() as patch:
            patch.setattr(time, "perf_counter", lambda: float(next(ticks)) ** power)
            return run(*problem(), noise="exact", **options)

    assert same(under(2.0), under(0.5))  # with a seed nothing depends on the clock
    path = tmp_path / "run.ckpt"
    begun, other = under(2.0, seed=None).method, under(0.5, seed=None).method
    assert {begun, other} == {Method.VECTORIZED, Method.LOOP}
    with pytest.raises(KilledError):
        under(2.0, seed=None, path=path, on_step=killer(5))
    with pytest.raises(CheckpointError, match="method"):
        under(2.0, seed=None, path=path, method=other)
    assert under(0.5, seed=None, path=path).method is begun


def test_a_finished_run_is_not_run_again(tmp_path):
    path = tmp_path / "run.ckpt"
    first = run(*problem(), path)
    calls = []
    again = run(*problem(), path, on_step=calls.append)
    assert same(first, again)
    assert not calls
    assert again.guarantee == first.guarantee


@pytest.mark.parametrize("keep", [0, 10, 60, 200, -1])
def test_a_damaged_checkpoint_is_refused(tmp_path, keep):
    path = tmp_path / "run.ckpt"
    run(*problem(), path)
    data = path.read_bytes()
    path.write_bytes(data[:keep])
    with pytest.raises(CheckpointError, match=r"not a checkpoint|damaged"):
        run(*problem(), path)
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 1
    path.write_bytes(bytes(flipped))
    with pytest.raises(CheckpointError, match="damaged"):
        run(*problem(), path)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"sigma": 0.9}, "sigma"),
        ({"rho": 2.0}, "rho"),
        ({"q": 0.5}, "q"),
        ({"seed": 4}, "seed"),
        ({"sampler": Sampler.POISSON_USERS}, "sampler"),
        ({"unit": "user"}, "unit"),
        ({"delta": 1e-6}, "delta"),
        ({"privacy": Target(3.0, 1e-5)}, "sigma"),
        ({"optimizer": lambda p: torch.optim.SGD(p, lr=0.1)}, "optimizer"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(tmp_path, options, name):
    path = tmp_path / "run.ckpt"
    with pytest.raises(KilledError):
        run(*problem(), path, on_step=killer(4))
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match=name):
        run(*problem(), path, **options)
    assert path.read_bytes() == before


def schedule(make):
    return {"optimizer": lambda p: torch.optim.SGD(p, lr=0.3), "scheduler": make}


SCHEDULES = [
    lambda o: torch.optim.lr_scheduler.StepLR(o, 2, gamma=0.5),
    lambda o: torch.optim.lr_scheduler.StepLR(o, 2, gamma=0.4),
    lambda o: torch.optim.lr_scheduler.StepLR(o, 20, gamma=0.5),  # differs only after the steps done
    lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda k: 0.9**k),
    lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda k: 0.8**k),  # its state has nothing to compare
]


@pytest.mark.parametrize(("one", "other"), [(0, 1), (0, 2), (3, 4), (4, 3)])
def test_another_schedule_of_learning_rates_is_refused(tmp_path, one, other):
    path = tmp_path / "run.ckpt"
    with pytest.raises(KilledError):
        run(*problem(), path, on_step=killer(4), **schedule(SCHEDULES[one]))
    with pytest.raises(CheckpointError, match="scheduler"):
        run(*problem(), path, **schedule(SCHEDULES[other]))
    assert same(run(*problem(), path, **schedule(SCHEDULES[one])), run(*problem(), **schedule(SCHEDULES[one])))


def test_other_rates_for_some_parameters_are_refused(tmp_path):
    def by_layer(last):
        return lambda p: torch.optim.SGD([{"params": p[:2]}, {"params": p[2:], "lr": last}], lr=0.3)

    path = tmp_path / "run.ckpt"
    run(*problem(), path, optimizer=by_layer(0.1))
    with pytest.raises(CheckpointError, match="optimizer"):
        run(*problem(), path, steps=12, optimizer=by_layer(0.2))


def test_a_checkpoint_of_other_code_is_refused(tmp_path, monkeypatch):
    """Another version may round sums differently: the same noise on both would show the difference."""
    path = tmp_path / "run.ckpt"
    with pytest.raises(KilledError):
        run(*problem(), path, on_step=killer(4))
    monkeypatch.setattr(files, "written_by", lambda: "0.0.1, code of another day")
    with pytest.raises(CheckpointError, match=r"elementdp: .*, now '0\.0\.1, code of another day'"):
        run(*problem(), path)


def other_activation():
    model, data = problem()
    model[2] = nn.ReLU()
    return model, data


def other_dropout():
    model, data = problem()
    model[1].p = 0.31
    return model, data


@pytest.mark.parametrize("other", [other_activation, other_dropout])
def test_a_changed_forward_pass_is_noticed(tmp_path, other):
    path = tmp_path / "run.ckpt"
    with pytest.raises(KilledError):
        run(*problem(), path, on_step=killer(4))
    with pytest.raises(CheckpointError, match="layers"):
        run(*other(), path)


class Hidden(nn.Module):
    """A model whose description says nothing about what it computes."""

    def __init__(self, power):
        super().__init__()
        torch.manual_seed(1)
        self.inner, self.power = nn.Linear(5, 2), power

    def forward(self, x):
        return self.inner(x) ** self.power


def test_a_loss_or_a_model_that_computes_something_else_is_noticed(tmp_path):
    _, data = problem()
    plain, smooth = (
        partial(nn.functional.cross_entropy, reduction="none", label_smoothing=smoothing) for smoothing in (0.0, 0.01)
    )
    options = {"rho": 1.0, "q": 0.4, "sigma": 0.8, "delta": 1e-5, "checkpoint": tmp_path / "run.ckpt"}
    trained(Hidden(1), data, plain, steps=3, **options)
    for model, loss in ((Hidden(1), smooth), (Hidden(2), plain)):
        with pytest.raises(CheckpointError, match="other losses"):
            trained(model, data, loss, steps=6, **options)
    assert trained(Hidden(1), data, plain, steps=6, **options).history.groups[5:]


def test_a_changed_weight_of_a_rare_class_is_noticed(tmp_path):
    """The class may be missing among the rows whose losses are compared."""
    inputs, targets = torch.randn(200, 5), torch.zeros(200, dtype=torch.long)
    targets[150] = 1
    data = UserData.of(inputs, targets, range(200), [0] * 200, 200)
    options = {"rho": 1.0, "steps": 2, "q": 0.1, "sigma": 1.0, "delta": 1e-3, "checkpoint": tmp_path / "run.ckpt"}
    losses = [nn.CrossEntropyLoss(torch.tensor(weights), reduction="none") for weights in ([1.0, 1.0], [1.0, 5.0])]
    trained(nn.Linear(5, 2), data, losses[0], **options)
    with pytest.raises(CheckpointError, match="loss"):
        trained(nn.Linear(5, 2), data, losses[1], **options)


@pytest.mark.parametrize("seed", [3, None])
def test_a_finished_run_goes_on_with_more_steps_and_counts_them_all(tmp_path, seed):
    path = tmp_path / "run.ckpt"
    run(*problem(), path, steps=5, seed=seed)
    more = run(*problem(), path, steps=9, seed=seed)
    whole = run(*problem(), steps=9, seed=seed)
    assert more.guarantee == whole.guarantee
    assert same(more, whole) == (seed is not None)
    with pytest.raises(CheckpointError, match="holds step 9"):
        run(*problem(), path, steps=7, seed=seed)


def test_other_data_or_another_model_is_refused(tmp_path):
    path = tmp_path / "run.ckpt"
    run(*problem(), path)
    model, _ = problem()
    with pytest.raises(CheckpointError, match="data"):
        run(model, problem(seed=5)[1], path)
    with pytest.raises(CheckpointError, match="model"):
        run(nn.Linear(5, 2), problem()[1], path)


class Loaded(Dataset):
    """Rows loaded one by one, in ways of its own."""

    def __init__(self, inputs, jitter=False):
        self.inputs, self.jitter = inputs, jitter

    def __getitem__(self, row):
        return self.inputs[row] + self.jitter * random.random(), 0


@pytest.mark.parametrize("kind", [Loaded, lambda x: TensorDataset(x, torch.zeros(len(x)))])
def test_a_changed_dataset_has_another_fingerprint(kind):
    inputs = torch.arange(20.0).view(10, 2)
    other = inputs.clone()
    other[7, 1] += 1e-3
    one, same_, changed = (UserData.of_dataset(kind(x), range(10), range(10), 10) for x in (inputs, inputs, other))
    assert one.fingerprint == same_.fingerprint != changed.fingerprint


def test_random_rows_are_known_by_the_name_they_are_given():
    inputs = torch.arange(20.0).view(10, 2)

    def fingerprint(content=None):
        return UserData.of_dataset(Loaded(inputs, True), range(10), range(10), 10, content=content).fingerprint

    assert fingerprint() == fingerprint()  # a random load is not a change
    assert fingerprint("v1") == fingerprint("v1") != fingerprint("v2")


def test_the_checkpoint_never_says_less_than_what_was_released(tmp_path):
    """Whatever step the run dies at, the steps on file have all been released, and their ε is on file too."""
    path = tmp_path / "run.ckpt"
    with pytest.raises(KilledError):
        run(*problem(), path, on_step=killer(7))
    state = files.unpack(path.read_bytes(), "run")
    assert state["step"] == 6
    assert state["spent"][0] == pytest.approx(run(*problem(), steps=6).guarantee.epsilon)


def test_a_crash_while_writing_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "run.ckpt"
    with pytest.raises(KilledError):
        run(*problem(), path, on_step=killer(2))
    before = path.read_bytes()
    assert path.stat().st_mode & 0o077 == 0  # the key of the noise is nobody else's

    def fail(_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        run(*problem(), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_run_does_not_depend_on_the_number_of_threads():
    threads = torch.get_num_threads()
    try:
        found = []
        for count in (1, 2):
            torch.set_num_threads(count)
            found.append(run(*problem()))
    finally:
        torch.set_num_threads(threads)
    assert same(*found)


def test_kill_minus_nine(tmp_path):
    """A real process, really killed."""
    path = tmp_path / "run.ckpt"
    code = textwrap.dedent(f"""
        import os, signal
        from learning.test_checkpoint import problem, run
        def on_step(step):
            if step.k == 5:
                os.kill(os.getpid(), signal.SIGKILL)
        run(*problem(), {str(path)!r}, on_step=on_step)
    """)
    here = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, env={**os.environ, "PYTHONPATH": here}
    )
    assert done.returncode == -signal.SIGKILL
    assert same(run(*problem()), run(*problem(), path))


def test_learning_rates_of_numpy_can_be_loaded_again(tmp_path):
    """They were written, and refused after a stop: the run was lost."""
    path, rates = tmp_path / "run.ckpt", schedule(lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda k: np.exp(-k)))
    run(*problem(), path, steps=5, **rates)
    assert same(run(*problem(), path, **rates), run(*problem(), **rates))


class Keeps(nn.Linear):
    """Has an extra state that is neither a tensor nor a plain value."""

    def get_extra_state(self):
        return Path("somewhere")

    def set_extra_state(self, state):
        pass


def test_what_cannot_be_loaded_again_is_refused_before_the_first_step(tmp_path):
    seen = []
    with pytest.raises(CheckpointError, match="cannot be loaded again"):
        run(Keeps(5, 2), problem()[1], tmp_path / "run.ckpt", on_step=seen.append)
    assert not seen
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_from_which_something_was_taken_is_refused(tmp_path):
    path = tmp_path / "run.ckpt"
    run(*problem(), path)
    whole = files.unpack(path.read_bytes(), "run")
    for name in STATE:
        path.write_bytes(files.pack({key: value for key, value in whole.items() if key != name}))
        with pytest.raises(CheckpointError, match=f"not complete .*{name} missing"):
            run(*problem(), path)
    body = b"no state at all"
    path.write_bytes(files._MAGIC + files.sha256_bytes(body).encode() + b"\n" + body)
    with pytest.raises(CheckpointError, match="cannot be loaded"):
        run(*problem(), path)


def forged(whole, name):
    """The state with one part that no run writes."""
    history, (count, mean) = whole["history"], whole["average"]
    return (
        whole
        | {
            "step": {"step": -1},
            "no step": {"step": "9"},
            "empty history": {"history": {}},
            "short history": {"history": {k: v[:-1] for k, v in history.items()}},
            "no history": {"history": [1.0]},
            "key": {"key": "k" * 64},
            "short key": {"key": whole["key"][:32]},
            "shapes": {"model": whole["model"] | {"0.weight": torch.zeros(6, 4)}},
            "names": {"model": {}},
            "average": {"average": (count, mean[1:])},
            "probes": {"losses": ["low"]},
            "optimizer": {"optimizer": {"state": {}}},
            "scheduler": {"scheduler": 3},
            "settings": {"settings": [1]},
        }[name]
    )


FORGED = {
    "step": "holds step -1",
    "no step": "holds step '9'",
    "empty history": "history that is not one of 9 steps",
    "short history": "history that is not one of 9 steps",
    "no history": "history that is not one of 9 steps",
    "key": "key that is not 64",
    "short key": "key that is not 64",
    "shapes": "of other names, shapes or types",
    "names": "of other names, shapes or types",
    "average": "average that is not one of 9 steps",
    "probes": "losses that are no numbers",
    "optimizer": "no state of this optimizer",
    "scheduler": "no state of this scheduler",
    "settings": "settings by name",
}


def test_a_checkpoint_that_no_run_has_written_is_refused(tmp_path):
    """Whoever can write the file can write its hash too."""
    path = tmp_path / "run.ckpt"
    schedule = {"scheduler": lambda o: torch.optim.lr_scheduler.StepLR(o, 3)}
    run(*problem(), path, **schedule)
    whole = files.unpack(path.read_bytes(), "run")
    for name, words in FORGED.items():
        path.write_bytes(files.pack(forged(whole, name)))
        with pytest.raises(CheckpointError, match=words):
            run(*problem(), path, steps=12, **schedule)


def test_a_checkpoint_beyond_the_plan_is_refused(tmp_path):
    path = tmp_path / "run.ckpt"
    run(*problem(), path)
    with pytest.raises(CheckpointError, match="holds step 9: ask for as many steps, or for more"):
        run(*problem(), path, steps=8)


@pytest.mark.parametrize("links", [True, False])
def test_two_runs_that_begin_at_once_do_not_share_a_file(tmp_path, monkeypatch, links):
    """Each would go on with the key of the one that wrote last, over noise that is already released."""
    path, begun, made = tmp_path / "run.ckpt", [], []
    if not links:  # a disk on which a file has one name
        monkeypatch.setattr(Path, "hardlink_to", lambda *_: (_ for _ in ()).throw(PermissionError))

    class Slow(PrivateIteration):
        def resume(self, path):
            found = super().resume(path)
            if not begun:
                begun.append(path)
                made.append(run(*problem(), path, seed=None))
            return found

    with monkeypatch.context() as patch:
        patch.setattr(training, "PrivateIteration", Slow)
        if links:
            with pytest.raises(CheckpointError, match="another run has just begun"):
                run(*problem(), path, seed=None)
    if links:
        assert same(made[0], run(*problem(), path, seed=None))
    else:
        run(*problem(), path, seed=None)
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_change_behind_a_head_that_starts_at_zero_is_noticed(tmp_path):
    """All losses are alike with it, but no gradient is."""

    class Headed(nn.Module):
        def __init__(self, function):
            super().__init__()
            torch.manual_seed(1)
            self.inner, self.head, self.function = nn.Linear(5, 6), nn.Linear(6, 2), function
            nn.init.zeros_(self.head.weight)

        def forward(self, x):
            return self.head(self.function(self.inner(x)))

    path = tmp_path / "run.ckpt"
    with pytest.raises(KilledError):
        run(Headed(torch.tanh), problem()[1], path, checkpoint_every=50, on_step=killer(4))
    with pytest.raises(CheckpointError, match="other losses"):
        run(Headed(torch.relu), problem()[1], path)


@pytest.mark.parametrize("name", [3, b"run.ckpt", "", ["run.ckpt"], "run\0.ckpt"])
def test_what_names_no_file_is_no_checkpoint(name):
    with pytest.raises(ArgumentError, match="checkpoint must be the name of a file"):
        Checkpoint(name)
