"""Several releases together: the Gaussian curve of all their stages, a budget that holds, and a page in plain words."""

import contextlib
import json
import math
import multiprocessing
import random
import time
from functools import partial
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import mpmath as mp
import pyarrow as pa
import pytest

from elementdp.elements import Partition
from elementdp.errors import ArgumentError, ElementdpError, NoGuaranteeError
from elementdp.histogram import Budget, private_histogram
from elementdp.histogram.composition import BudgetFile, ReleaseCost, composed_epsilon
from elementdp.histogram.report import odds_grow, page

WORDS = ("one element of one user", "each url", "data replaced by any other", "user")


def cost(epsilon: float = 1.0, delta: float = 1e-6, words: tuple[str, str, str, str] = WORDS) -> ReleaseCost:
    return ReleaseCost.planned(Budget(epsilon, delta), words, discovers=True, chooses_radius=True)


def exact_delta(epsilon: float, mu: float) -> float:
    with mp.workdps(40):
        m, e = mp.mpf(mu), mp.mpf(epsilon)
        return float(mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m))


def test_one_release_costs_what_it_promised() -> None:
    epsilon, delta = composed_epsilon([cost(1.0, 1e-6)])
    assert delta == 1e-6
    assert 1.0 - 1e-4 <= epsilon <= 1.0


@pytest.mark.parametrize("number", [2, 5, 40])
def test_many_releases_are_the_gaussian_of_all_stages(number: int) -> None:
    costs = [cost(0.5, 1e-7) for _ in range(number)]
    epsilon, delta = composed_epsilon(costs)
    assert delta == pytest.approx(number * 1e-7)
    mu = math.sqrt(sum(one.mu**2 for one in costs))
    total = exact_delta(epsilon, mu) + sum(one.threshold_delta for one in costs)
    assert 0.99 * delta <= total <= delta
    assert epsilon < number * 0.5


def test_a_smaller_delta_costs_a_larger_epsilon() -> None:
    costs = [cost(), cost()]
    assert composed_epsilon(costs, 1.5e-6)[0] > composed_epsilon(costs)[0]
    with pytest.raises(NoGuaranteeError, match="too small"):
        composed_epsilon(costs, 1e-7)


@pytest.mark.parametrize("place", range(4))
def test_what_does_not_combine_is_refused(place: int) -> None:
    other = list(WORDS)
    other[place] = "something else"
    with pytest.raises(NoGuaranteeError, match="do not combine"):
        composed_epsilon([cost(), cost(words=(other[0], other[1], other[2], other[3]))])


@pytest.mark.parametrize(
    "element", [lambda url: url[0], Partition(len), Partition.from_labels({"a": 1}), Partition.from_key(partial(len))]
)
def test_an_element_without_a_name_does_not_combine(element: Any) -> None:
    table = pa.table({"person": ["ann"], "url": ["a"]})
    release = partial(
        private_histogram, table, user="person", item="url", privacy=Budget(1, 1e-6), items=["a"], rho=1.0
    )
    with pytest.raises(NoGuaranteeError, match="give the Partition a name"):
        composed_epsilon([ReleaseCost.of(release(element=element).as_json())])
    named = ReleaseCost.of(release(element=Partition(len, "length")).as_json())
    assert (named.element, named.user_column) == ("url by length", "person")
    assert composed_epsilon([named, named])[0] > 1


def test_a_guarantee_without_its_user_column_does_not_combine() -> None:
    with pytest.raises(NoGuaranteeError, match="user column"):
        ReleaseCost.of({"epsilon": 1.0, "spent": []})


def test_a_seeded_release_does_not_combine() -> None:
    with pytest.raises(NoGuaranteeError, match="seeded"):
        ReleaseCost.of({"epsilon": None, "spent": []})


def budget(path: Path, epsilon: float) -> BudgetFile:
    path.write_text(json.dumps({"epsilon": epsilon, "delta": 1e-5}) + "\n")
    return BudgetFile(path)


def test_a_budget_refuses_to_go_over_and_remembers(tmp_path: Path) -> None:
    file = budget(tmp_path / "budget", 2.0)
    spent = 0.0
    for _ in range(2):
        now, allowed = file.spend(cost())
        assert spent < now <= allowed == 2.0
        spent = now
    before = file.path.read_bytes()
    with pytest.raises(NoGuaranteeError, match="nothing was spent"):
        for _ in range(5):
            before = file.path.read_bytes()
            file.spend(cost())
    assert file.path.read_bytes() == before


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_a_budget_takes_a_release_of_its_own_size_and_no_more(epsilon: float, tmp_path: Path) -> None:
    file = budget(tmp_path / "budget", epsilon)
    spent, allowed = file.spend(cost(epsilon, 1e-5))
    assert 0.999 * epsilon <= spent <= allowed == epsilon
    with pytest.raises(NoGuaranteeError, match="nothing was spent"):
        file.spend(cost(epsilon / 10, 1e-7))


def spend_once(path: Path) -> None:
    BudgetFile(path).spend(cost(0.1))


def test_releases_at_once_are_all_entered(tmp_path: Path) -> None:
    file = budget(tmp_path / "budget", 50.0)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=spend_once, args=(file.path,)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(file.path.read_text().splitlines()) == 4


LIMIT = '{"epsilon": 1, "delta": 1e-5}\n'


@pytest.mark.parametrize(
    "content",
    ["", "not JSON\n", '{"epsilon": 1}\n', '{"epsilon": 1, "de', LIMIT + '{"epsi\n', LIMIT + "{}\n", LIMIT + "7"],
)
def test_a_broken_budget_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "budget").write_text(content)
    with pytest.raises(ElementdpError):
        BudgetFile(tmp_path / "budget").spend(cost())
    assert (tmp_path / "budget").read_text() == content
    with pytest.raises(ArgumentError, match="budget"):
        BudgetFile(tmp_path / "none").spend(cost())


def test_an_entry_cut_off_anywhere_counts_if_it_is_whole_and_is_dropped_if_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every place where a writer can die: no spent charge is lost, and the file goes on."""
    monkeypatch.setattr("os.fsync", lambda handle: None)  # slow, and no machine goes down here
    file, one = budget(tmp_path / "budget", 50.0), cost()
    together = {number: composed_epsilon([one] * number, 1e-5)[0] for number in (2, 3)}
    file.spend(one)
    before = file.path.read_bytes()
    file.spend(one)
    after = file.path.read_bytes()
    for cut in range(len(before), len(after) + 1):
        file.path.write_bytes(after[:cut])
        counted = 2 if cut >= len(after) - 1 else 1
        assert file.spend(one)[0] == together[counted + 1]
        assert file.path.read_bytes() == (after if counted == 2 else before) + after[len(before) :]


def spend_until_refused(path: Path, one: ReleaseCost, said: Connection) -> None:
    try:
        while True:
            BudgetFile(path).spend(one)
            said.send(1)
    except NoGuaranteeError:
        said.send(0)


def test_a_budget_survives_processes_killed_at_random(tmp_path: Path) -> None:
    """Whatever was told as spent is in the file, and nobody gets more than the budget, however many are killed."""
    file, one = budget(tmp_path / "budget", 0.2), cost(0.02, 1e-8)
    context = multiprocessing.get_context("fork")
    pause, told, refused = random.Random(0), 0, 0
    while refused < 2:
        pipes = [context.Pipe(duplex=False) for _ in range(2)]
        workers = [context.Process(target=spend_until_refused, args=(file.path, one, said)) for _, said in pipes]
        for worker in workers:
            worker.start()
        time.sleep(pause.uniform(0.0, 0.05))
        for worker, (heard, said) in zip(workers, pipes, strict=True):
            worker.kill()
            worker.join()
            said.close()
            with contextlib.suppress(EOFError):
                while True:
                    spent = heard.recv()
                    told, refused = told + spent, refused + (not spent)
        entries = len(file.path.read_bytes().rpartition(b"\n")[0].splitlines()) - 1
        assert told <= entries
    most = next(k for k in count(1) if composed_epsilon([one] * (k + 1), 1e-5)[0] > 0.2)
    assert entries == most


@pytest.mark.parametrize("mu", [0.1, 0.24, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0, 12.0])
def test_odds_grow_by_more_than_the_page_says_no_more_often_than_it_says(mu: float, epsilon: float) -> None:
    """For a Gaussian of its exact δ: the loss is normal with mean μ²/2 and variance μ²."""
    factor, chance = odds_grow(epsilon, exact_delta(epsilon, mu))
    assert float(mp.ncdf((mu**2 / 2 - math.log(factor)) / mu)) <= chance


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-9), (1.0, 1e-6), (1.0, 0.01), (3.0, 0.2)])
def test_what_the_page_says_of_odds_is_reached_by_a_law_that_keeps_the_promise(epsilon: float, delta: float) -> None:
    """An outcome of probability ``chance`` that multiplies odds by a hair more than the factor costs δ and no less."""
    factor, chance = odds_grow(epsilon, delta)
    assert chance - math.exp(epsilon) * chance / (factor * (1 + 1e-9)) == pytest.approx(delta, rel=1e-5)


def test_the_page_says_what_is_promised_and_escapes_what_it_quotes() -> None:
    promise = {
        "statement": "…", "unit": WORDS[0], "element": "<script>", "relation": WORDS[2], "epsilon": 1.0, "delta": 1e-6,
        "rho": 2.0, "clipped": None, "intervals": "low and high", "noise": "discrete", "items": "public list",
        "spent": [{"stage": "release", "mu": 0.2, "delta": 0.0, "sensitivity": 1.0, "noise": 5.0}], "elementdp": "0.1",
    }  # fmt: skip
    text = page(promise)
    assert "<script>" not in text
    assert "<td>3 to 1</td><td>75%</td><td>8.24 to 1</td><td>89.2%</td>" in text  # 3e is 8.15, and 0.01 for the δ
    assert "1 in 10,000" in text
    assert "The columns low and high." in text
    assert "the counts say little about" in text
    assert "Sums" not in text
    assert "Sums: a &lt;b&gt;." in page(promise | {"value": {"words": "a <b>"}})
    assert "http" not in text
    assert 'privacy_unit: "one element of one user"' in text.replace("&quot;", '"')
    with pytest.raises(NoGuaranteeError):
        page(promise | {"epsilon": None})
