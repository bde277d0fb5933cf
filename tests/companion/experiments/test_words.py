"""Section 4.1: tokens, counts, the exact law of the error, the choice of ρ, against plain computations."""

import math

import numpy as np
import pytest
from scipy import stats

from elementdp.companion.data import UserTexts, store
from elementdp.companion.experiments.words import (
    Elements,
    Halves,
    Sensitivity,
    WordsPlan,
    corpus,
    figure,
    heaviest,
    largest_mass,
    prepare,
    read_words,
    slope,
    tokens,
    true_epsilon,
    word_clusters,
)
from elementdp.companion.experiments.words.histogram import drawn_error, expected_error, noise_scale
from elementdp.companion.theory.counting.calibration import paper_variance
from elementdp.elements import Clusters
from elementdp.errors import ArgumentError


@pytest.fixture(scope="module")
def small():
    return prepare("stand-in", "stand-in", 60, 80, (1,), 0, vocabulary=600)


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ELEMENTDP_DATA", str(tmp_path))
    monkeypatch.setattr(store.platformdirs, "user_cache_path", lambda *args, **kwargs: tmp_path / "cache")


def test_tokens_split_contractions_as_glove_does():
    assert tokens("Don't panic: it\u2019s 42, isn't it? I'm n't 'sure'") == (
        ["do", "n't", "panic", "it", "'s", "42", "is", "n't", "it", "i", "'m", "n't", "sure"]
    )


def test_corpus_counts_by_hand():
    words = tuple(f"w{number}" for number in range(300))
    rng = np.random.default_rng(0)
    users = []
    for number in range(6):
        length = 400 + 50 * number
        users.append(UserTexts(str(number), (" ".join(f"w{t}" for t in rng.integers(0, 300, length)), "unknown")))
    found = corpus(users, words, 3, 100, seed=1, stop="frequent")
    assert found.n == 3 and found.vocabulary == 300 and len(found.stop_words) == 100
    assert found.counts.sum(axis=1).tolist() == [100, 100, 100]
    every = [word for user in users for word in tokens(" ".join(user.texts)) if word in set(words)]
    often = sorted(words, key=lambda word: (-every.count(word), words.index(word)))[:100]
    assert set(found.stop_words) == set(often)
    assert not set(found.stop_words) & {words[row] for row in found.column}
    # m words without replacement: never more of a word than the user wrote; users in order of length.
    written = [tokens(user.texts[0]) for user in users]
    left = [sum(word not in often for word in text) for text in written]
    for row, user in enumerate(sorted(range(6), key=lambda u: -left[u])[:3]):
        dense = found.counts[[row]].toarray().ravel()
        assert all(count <= written[user].count(words[found.column[j]]) for j, count in enumerate(dense))
    with pytest.raises(ArgumentError, match="the users with 1000 words"):
        corpus(users, words, 3, 1000, stop="frequent")


def test_listed_stop_words_are_stop_words():
    words = ("the", "and", "love", "n't", "it", "pizza")
    users = [UserTexts("a", ("the love and pizza " * 30,)), UserTexts("b", ("it don't love love pizza " * 30,))]
    found = corpus(users, words, 2, 20)
    assert set(found.stop_words) == {"the", "and", "it", "n't"}
    assert {words[row] for row in found.column} == {"love", "pizza"}


def plain_error(corpus_, half, clusters, rho, z):
    """‖Ĥ - H₀‖² word by word, with given standard normals for the whole dictionary."""
    dense = np.zeros((half.n, corpus_.vocabulary))
    dense[:, corpus_.column] = half.sample.toarray()
    for label in range(clusters.count):
        rows = clusters.labels == label
        norm = np.linalg.norm(dense[:, rows], axis=1, keepdims=True)
        dense[:, rows] *= np.minimum(1.0, rho / np.maximum(norm, 1e-300))
    truth = np.zeros(corpus_.vocabulary)
    truth[corpus_.column] = half.truth
    return np.square(dense.mean(axis=0) / half.m + z - truth).sum()


def test_error_is_the_plain_error_and_its_law_is_exact(small):
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 40, 600)
    labels[:30] = np.arange(40, 70)  # some words alone in their cluster
    clusters = Clusters(labels.astype(np.int64))
    part, half = Elements.of(clusters, small.corpus), Halves.split(small.corpus, rng)
    rho, epsilon, delta = 3.0, 2.0, 1e-3
    bias = half.bias(part, (1.0, rho))[1]
    assert bias.sum() == pytest.approx(plain_error(small.corpus, half, clusters, rho, 0.0))
    sigma = math.sqrt(paper_variance(epsilon, delta))
    sd = noise_scale(rho, epsilon, delta, half.n, half.m) * part.scale(Sensitivity.RIGHT)
    assert sd == pytest.approx(np.array([math.sqrt(2), 1.0]) * rho * sigma / (half.n * half.m))
    alone = (clusters.sizes == 1)[clusters.labels]
    spread = np.where(alone, sd[1], sd[0])
    plain = [plain_error(small.corpus, half, clusters, rho, spread * rng.normal(size=600)) for _ in range(400)]
    quick = drawn_error(np.tile(bias, (4000, 1)), np.tile(sd, (4000, 1)), part.columns(), rng)
    assert stats.ks_2samp(plain, quick).pvalue > 1e-3
    assert quick.mean() == pytest.approx(float(expected_error(bias, sd, part.columns())), rel=0.02)


def test_edges_of_the_law():
    rng = np.random.default_rng(0)
    none = drawn_error(np.zeros((5, 2)), np.ones((5, 2)), np.array([0, 0]), rng)
    assert none.tolist() == [0.0] * 5
    one = drawn_error(np.zeros((20_000, 2)), np.ones((20_000, 2)), np.array([0, 1]), rng)
    assert one.mean() == pytest.approx(1.0, abs=0.05)  # χ² with one degree of freedom


def test_true_epsilon_of_printed_noise():
    """With ρ for √2·ρ the claim is broken once the formula's slack is used up: δ(ε) at the claimed ε exceeds δ."""
    delta = 2000**-1.1
    assert true_epsilon(1.0, delta) > 1.0
    mu = math.sqrt(2.0 / paper_variance(1.0, delta))
    at_claim = stats.norm.cdf(mu / 2 - 1 / mu) - math.e * stats.norm.cdf(-mu / 2 - 1 / mu)
    assert at_claim > delta


def test_clusters_are_kept_and_a_damaged_file_is_recomputed(tmp_path, monkeypatch):
    monkeypatch.setattr("elementdp.companion.experiments.words.partitions.WORTH_KEEPING", 1)
    vectors = np.random.default_rng(0).normal(size=(200, 5)).astype(np.float32)
    first = word_clusters(vectors, "hash", 7)
    (kept,) = tmp_path.glob("word-clusters-7-*.npz")
    assert word_clusters(vectors, "hash", 7).labels.tolist() == first.labels.tolist()
    kept.write_bytes(kept.read_bytes()[:100])
    assert word_clusters(vectors, "hash", 7).labels.tolist() == first.labels.tolist()
    assert word_clusters(vectors, "hash", 1).count == 1 and word_clusters(vectors, "hash", 200).count == 200
    with pytest.raises(ArgumentError, match="at most the number of words"):
        word_clusters(vectors, "hash", 201)


def test_figure_on_a_stand_in(small):
    plan = WordsPlan(epsilons=(1.0, 8.0), validation=2, splits=6, private_splits=2)
    points, lines = figure(small.corpus, small.partitions, plan)
    assert small.stand_in and "stand-in" in small.label
    keyed = {(p.clusters, p.sensitivity, p.choice, p.epsilon): p for p in points}
    assert len(keyed) == 2 * 3 * 2
    for p in points:
        assert p.splits == (2 if p.choice == "private" else 6)
        assert p.rho in plan.rhos or p.choice == "private"
    for epsilon in plan.epsilons:
        # One word an element has sensitivity ρ either way; for K = 1 the right noise costs more.
        one = [keyed[1, kind, "validation", epsilon] for kind in ("as printed", "right")]
        assert one[1].ratio > one[0].ratio
        assert keyed[600, "right", "validation", epsilon].ratio < one[1].ratio
    assert points == figure(small.corpus, small.partitions, plan)[0]
    assert lines[0].largest_mass == 1.0


def test_reading_without_noise_finds_the_frequent_words(small):
    half = Halves.split(small.corpus, np.random.default_rng(0))
    clusters = small.partitions[600]
    sure = read_words(small.corpus, half, clusters, 200.0, 1e6, small.words, 10, np.random.default_rng(1))
    lost = read_words(small.corpus, half, clusters, 200.0, 0.01, small.words, 10, np.random.default_rng(1))
    assert sure.count >= 7 > lost.count
    element = heaviest(small.corpus, clusters, small.words, 1, 3)[0]
    assert element.size == 1 and element.mass == pytest.approx(
        largest_mass(small.corpus, Elements.of(clusters, small.corpus))
    )


def test_slope_recovers_a_power_law():
    found = slope([1, 10, 100, 1000], [8.0, 8 * 10**-0.3, 8 * 10**-0.6, 8 * 10**-0.9])
    assert found.slope == pytest.approx(-0.3) and found.r_squared == pytest.approx(1)
    assert found.largest_residual == pytest.approx(0, abs=1e-9)
