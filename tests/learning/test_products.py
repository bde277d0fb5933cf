"""Products of constants: as exact as torch's own, by oneDNN or without it, for any number of threads."""

import numpy as np
import pytest
import torch
from torch import nn

from elementdp.learning import Batch, GroupClipper
from elementdp.learning._fast import products

SIZES = [(3, 5, 2), (1, 4096, 300), (300, 1, 4096), (257, 129, 65), (128, 512, 64)]


@pytest.fixture(params=["with oneDNN", "without oneDNN"])
def _build(request, monkeypatch):
    """A processor that needs oneDNN's products, and one that does not."""
    wanted = request.param == "with oneDNN"
    monkeypatch.setattr(products, "_onednn", torch.ops.mkldnn._linear_pointwise if wanted else None)


def layouts(tensor):
    """The same numbers as they may lie in memory."""
    spread = torch.zeros(len(tensor), 2 * tensor.shape[1], dtype=tensor.dtype)
    spread[:, ::2] = tensor
    return [tensor, tensor.mT.contiguous().mT, spread[:, ::2]]


@pytest.mark.usefixtures("_build")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_product_is_as_exact_as_rounding_allows(size, dtype):
    """Within the classical bound n·u·|A||B| of the product in numpy's extended precision."""
    rows, inner, columns = size
    torch.manual_seed(0)
    left, right = torch.randn(rows, inner, dtype=dtype), torch.randn(inner, columns, dtype=dtype)
    a, b = (t.numpy().astype(np.longdouble) for t in (left, right))
    true, bound = a @ b, inner * torch.finfo(dtype).eps * (np.abs(a) @ np.abs(b))
    for one in layouts(left):
        for other in layouts(right):
            assert (np.abs(products.times(one, other).numpy() - true) <= bound).all()
    found = products.product(left.mT.contiguous(), right, 1 << 24)
    assert (np.abs(found.numpy() - true) <= bound).all()


@pytest.mark.usefixtures("_build")
def test_products_of_groups_are_the_sums_of_their_rows():
    torch.manual_seed(0)
    left, right = torch.randn(12, 30, 96), torch.randn(12, 30, 128)
    segments = products.Segments((4, 4, 3, 1))
    found = products.group_products(left, right, segments)
    start = 0
    for got, size in zip(found, segments.sizes, strict=True):
        rows = slice(start, start + size)
        true = torch.einsum("rpa,rpb->ab", left[rows].double(), right[rows].double())
        assert torch.allclose(got.double(), true, atol=1e-4)
        start += size


@pytest.mark.usefixtures("_build")
def test_a_bias_may_lie_anywhere_in_memory():
    torch.manual_seed(0)
    left, right, added = torch.randn(512, 64), torch.randn(64, 128), torch.randn(256)[::2]
    true = (left.double() @ right.double() + added.double()).float()
    assert torch.allclose(products.times(left, right, added), true, atol=1e-4)


@pytest.mark.parametrize(
    ("vendor", "family", "capability", "half"),
    [
        ("AuthenticAMD", 26, "AVX512", True),
        ("AuthenticAMD", 25, "AVX512", False),
        ("AuthenticAMD", 26, "AVX2", False),
        ("GenuineIntel", 26, "AVX512", False),
    ],
)
def test_the_processor_decides_which_product_is_taken(tmp_path, monkeypatch, vendor, family, capability, half):
    """Never the clock: a seeded run repeats."""
    told = tmp_path / "cpuinfo"
    told.write_text(f"processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\n\nprocessor\t: 1\n")
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    assert products.half_speed(told) is half
    assert not products.half_speed(tmp_path / "missing")


def test_infinite_numbers_stay_infinite():
    """A group that is not finite has to be seen as such."""
    left, right = torch.ones(300, 200), torch.ones(200, 300)
    left[7, 3], left[8, 4] = torch.inf, torch.nan
    found = products.times(left, right)
    assert found[7].isinf().all()
    assert found[8].isnan().all()
    assert found[[i for i in range(300) if i not in (7, 8)]].isfinite().all()


class Words(nn.Module):
    """Layers whose products are large enough for oneDNN."""

    def __init__(self):
        super().__init__()
        self.words, self.inner, self.out = nn.Embedding(50, 64), nn.LSTM(64, 96, batch_first=True), nn.Linear(96, 5)

    def forward(self, x):
        return self.out(self.inner(self.words(x))[0][:, -1])


@pytest.mark.usefixtures("_build")
def test_a_clipped_sum_does_not_depend_on_the_number_of_threads():
    torch.manual_seed(0)
    model = Words()
    batch = Batch.of(torch.randint(50, (64, 12)), torch.randint(5, (64,)), (4,) * 16)
    threads, found = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            clipper = GroupClipper(model, nn.CrossEntropyLoss(reduction="none"), 0.1, method="fast")
            found.append(clipper(batch).gradients)
    finally:
        torch.set_num_threads(threads)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


class Texts(nn.Module):
    """Linear layers at every position, large enough for oneDNN, and an activation that works in place."""

    def __init__(self, places):
        super().__init__()
        self.inner, self.out = nn.Linear(64, 128), nn.Linear(128, 5)
        self.places = nn.Parameter(torch.randn(1, 12, 64)) if places else 0

    def forward(self, x):
        return self.out(torch.relu_(self.inner(x + self.places)).mean(1))


@pytest.mark.usefixtures("_build")
@pytest.mark.parametrize("places", [False, True], ids=["rules alone", "a parameter without a rule"])
def test_linear_layers_by_faster_products_have_the_same_clipped_sum(places):
    torch.manual_seed(0)
    model = Texts(places)
    batch = Batch.of(torch.randn(64, 12, 64), torch.randint(5, (64,)), (4,) * 16)
    forward = dict(vars(model.inner))
    found = {
        method: GroupClipper(model, nn.CrossEntropyLoss(reduction="none"), 0.1, method=method)(batch)
        for method in ("fast", "loop")
    }
    scale = max(float(g.abs().max()) for g in found["loop"].gradients)
    for one, other in zip(found["fast"].gradients, found["loop"].gradients, strict=True):
        assert float((one - other).abs().max()) <= 1e-5 * scale
    assert torch.allclose(found["fast"].norms, found["loop"].norms, rtol=1e-4)
    assert forward.keys() == vars(model.inner).keys()  # the layer is left as it was
