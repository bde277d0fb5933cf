"""Fast products that round to fewer bits: they may not touch norms and clipped sums; no setting is left changed."""

import subprocess
import sys
import warnings

import pytest
import torch
from learning.oracle import cross_entropy
from torch import nn
from torch.backends import cuda, cudnn, mkldnn
from torch.utils._python_dispatch import TorchDispatchMode

from elementdp.learning.batch import Batch
from elementdp.learning.clipping import GroupClipper, Memory
from elementdp.learning.precision import exact

SETTINGS = (torch.backends, cudnn, mkldnn, cuda.matmul, cudnn.conv, mkldnn.matmul, mkldnn.conv)


def settings():
    try:
        older = torch.get_float32_matmul_precision()
    except RuntimeError:  # torch refuses to tell where it differs from the newer ones
        older = "highest"
    return [holder.fp32_precision for holder in SETTINGS], older


@pytest.fixture(autouse=True)
def _restored():
    """Settings are the process's own: put back what a test sets."""
    yield
    torch.set_float32_matmul_precision("highest")
    for holder in (torch.backends, cudnn, cuda.matmul, mkldnn.matmul, mkldnn.conv):
        holder.fp32_precision = "none"
    cudnn.conv.fp32_precision = "tf32"


class TensorCores(TorchDispatchMode):
    """A device that rounds to TF32 what the settings for CUDA let it round."""

    PRODUCTS = ("mm", "bmm", "addmm", "addmm_", "mv", "baddbmm")
    CONVOLUTIONS = ("convolution", "convolution_backward")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        setting = cuda.matmul if name in self.PRODUCTS else cudnn.conv if name in self.CONVOLUTIONS else None
        if setting is not None and setting.fp32_precision == "tf32":
            args = [rounded(arg) if isinstance(arg, torch.Tensor) and not name.endswith("_") else arg for arg in args]
        return func(*args, **(kwargs or {}))


def rounded(values):
    """To the eleven bits of TF32."""
    mantissa, exponent = torch.frexp(values)
    return torch.ldexp(torch.round(mantissa * 2**11), exponent - 11)


MODELS = {
    "linear": lambda: nn.Linear(12, 5),
    "linear, long groups": lambda: nn.Linear(4, 3),
    "convolution": lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(16, 5)),
}


@pytest.mark.parametrize("method", ["fast", "loop"])
@pytest.mark.parametrize("name", MODELS)
def test_a_group_adds_at_most_rho_on_a_device_with_tensor_cores(name, method):
    torch.set_float32_matmul_precision("medium")
    before, rho, most = settings(), 1e-3, 0.0
    for seed in range(8):
        torch.manual_seed(seed)
        model = MODELS[name]()
        inputs = torch.randn(6, 3, 4, 4) if name == "convolution" else torch.randn(6, model.in_features)
        # Norms and sums by different products, as with many channels.
        clip = GroupClipper(model, cross_entropy, rho, method=method, memory=Memory(keep=1))
        with TensorCores():
            found = clip(Batch.of(inputs, torch.randint(0, 3, (6,)), [6]))
        most = max(most, float(torch.cat([g.double().flatten() for g in found.gradients]).norm()))
    assert rho * (1 - 1e-4) < most <= rho * (1 + 1e-6)
    assert settings() == before


def own(holder, value):
    return lambda: setattr(holder, "fp32_precision", value)


@pytest.mark.parametrize(
    "chosen",
    [
        [],
        [lambda: torch.set_float32_matmul_precision("high")],
        [lambda: torch.set_float32_matmul_precision("medium")],
        [lambda: torch.set_float32_matmul_precision("medium"), own(cuda.matmul, "ieee")],
        [own(torch.backends, "tf32")],
        [own(cudnn, "tf32"), own(mkldnn.conv, "bf16")],
        [own(cuda.matmul, "tf32"), own(cudnn.conv, "ieee"), own(torch.backends, "bf16")],
    ],
)
def test_settings_are_exact_within_and_the_callers_own_afterwards(chosen):
    for choose in chosen:
        choose()
    before = settings()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(KeyError), exact(), exact():
            assert settings() == (["ieee"] * len(SETTINGS), "highest")
            raise KeyError
    assert settings() == before
    torch.backends.fp32_precision = "none"
    without = settings()
    torch.backends.fp32_precision = "tf32"  # what followed its parent follows it still
    followed = settings()[0]
    with exact():
        pass
    assert settings()[0] == followed
    torch.backends.fp32_precision = "none"
    assert settings() == without


def test_a_default_that_follows_its_parent_still_does():
    """torch's own default for convolutions is TF32 unless the parent says otherwise; it has no name to set it by."""
    code = (
        "import torch; from elementdp.learning.precision import exact\n"
        "with exact(): pass\n"
        "conv = torch.backends.cudnn.conv; first = conv.fp32_precision\n"
        "torch.backends.fp32_precision = 'ieee'; print(first, conv.fp32_precision)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["tf32", "ieee"]


@pytest.mark.parametrize("method", ["fast", "vectorized", "loop"])
@pytest.mark.parametrize("memory", [Memory(), Memory(keep=1)], ids=["kept", "in pieces"])
@pytest.mark.parametrize(("inputs", "outputs"), [(512, 512), (3000, 300), (100_000, 64), (1_000_000, 1)])
def test_the_norm_of_many_numbers_that_are_alike_is_never_too_small(method, memory, inputs, outputs):
    """Their rounding errors all point one way: a norm could be a percent too small, and let more than ρ through."""
    for value in (0.1, 0.3, 0.7):
        model = nn.Linear(inputs, outputs, bias=False)
        nn.init.zeros_(model.weight)
        x, sizes = torch.full((6, inputs), value), (1, 2, 3)
        clipper = GroupClipper(model, lambda out, factor: out.sum(1) * factor, 1.0, method=method, memory=memory)
        found = clipper(Batch.of(x, torch.full((6,), value), sizes))
        exact = float(x[0, 0].double() ** 2) * (inputs * outputs) ** 0.5
        assert float(found.norms.double().min()) >= exact * (1 - 16 * torch.finfo(torch.float32).eps)
        assert float(found.norms.double().max()) <= exact * (1 + 1e-4)
        passed = torch.cat([g.flatten().double() for g in found.gradients]).norm()
        assert float(passed) <= len(sizes) * 1.0 * (1 + 1e-6)
