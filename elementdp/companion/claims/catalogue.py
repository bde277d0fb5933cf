"""Every statement the book has to settle: where it stands, what it says in our words, where we treat it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Statement:
    """A statement of the paper; ``section`` is the page of the book that settles it."""

    id: str
    where: str
    text: str
    section: str


_STATEMENTS = (
    Statement(
        "def-dp",
        "Definition 1 (definition:dp)",
        "(ε, δ)-privacy for any distance between samples; with the order-free Hamming distance it is the usual one.",
        "foundations/definitions",
    ),
    Statement(
        "def-rdp",
        "Definition 2 (definition:renyi-dp)",
        "(ε, α)-Rényi privacy for any distance between samples.",
        "foundations/definitions",
    ),
    Statement(
        "def-element",
        "Definition 3 (definition:element-dp; eqn:def-user-dist, eqn:element-distance)",
        "Users differ by the number of clusters in which their multisets differ; samples by the best matching of "
        "users. One cluster gives back user-level privacy; the three left transcripts of Figure 1 are neighbouring, "
        "at distance 2.",
        "foundations/definitions",
    ),
    Statement(
        "rdp-to-dp",
        "text after Definition 2",
        "(ε, α)-Rényi privacy implies (ε + log(1/δ)/(α-1), δ)-privacy for every δ.",
        "mechanisms/mechanisms",
    ),
    Statement(
        "gaussian-mech",
        "eqn:mironov-gaussian-mech and Appendix A (sec:sufficiency-of-mironov)",
        "Gaussian noise of variance ρ²(1{ε>1}/ε + 2 log(1/δ)/ε²) gives (ε, δ)-privacy for every ε > 0.",
        "mechanisms/mechanisms",
    ),
    Statement(
        "basic-mech",
        "eqn:basic-mechanisms",
        "Laplace or Gaussian noise scaled to the element sensitivity makes an average over n users element-private.",
        "mechanisms/mechanisms",
    ),
    Statement(
        "post-processing",
        "corollary:post-processing",
        "Whatever is computed from a private output is as private.",
        "foundations/properties",
    ),
    Statement(
        "group-privacy",
        "corollary:group-privacy",
        "At distance D an (ε, δ)-private mechanism is (Dε, D e^{(D-1)ε} δ)-indistinguishable.",
        "foundations/properties",
    ),
    Statement(
        "composition",
        "corollary:composition",
        "k mechanisms compose to (Σε, Σδ), to (3/2 Σε² + √(6 Σε² log(1/δ₀)), δ₀ + Σ δ/(1+e^ε)), "
        "and Rényi guarantees of one order add.",
        "foundations/properties",
    ),
    Statement(
        "subsampling",
        "corollary:subsampling",
        "Sampling users at rate q turns an (ε, δ)-element-private mechanism into a "
        "(log(1+q(e^ε-1)), qδ)-element-private one; so does drawing m of n users.",
        "accounting/subsampling",
    ),
    Statement(
        "moments-accountant",
        "corollary:momentacc and the display after it",
        "The user-sampled Gaussian sum has the Rényi curve of the pair qP₁+(1-q)P₀, qP₋₁+(1-q)P₀, "
        "at most q²α/((1-q)σ²) + O(q³/σ³), with Poisson or fixed-size sampling alike.",
        "accounting/subsampling",
    ),
    Statement(
        "heavy-hitters-privacy",
        "lemma:privacy-heavy-hitters and σ²_std",
        "Counting users per item with noise variance α/ε (Rényi) or the Gaussian formula (approximate) is "
        "element-private; user-level privacy takes m times that variance.",
        "mechanisms/heavy-hitters",
    ),
    Statement(
        "heavy-hitters-loss",
        "eqn:heavyhittersloss",
        "The ordering loss counts pairs with p_j - p_l ≥ γ for which the estimate of j exceeds that of l.",
        "mechanisms/heavy-hitters",
    ),
    Statement(
        "heavy-hitters-utility",
        "proposition:heavyhitters (lemma:indicator-properties, lemma:order-error-bound)",
        "The expected ordering loss is at most t² once γ exceeds the larger of three printed terms.",
        "mechanisms/heavy-hitters",
    ),
    Statement(
        "histogram-privacy",
        "lem:dp-truncation-cluster",
        "Projecting each cluster of counts onto a ball of radius ρ and adding noise of standard deviation ρσ/n is "
        "element-private with the σ of the Gaussian mechanism.",
        "mechanisms/histograms",
    ),
    Statement(
        "histogram-utility",
        "proposition:element-level-histogram (lemma:binbound, lemma:biasbound)",
        "With ρ ≥ 3mP(c) + 3 log m + t the projected histogram has exponentially small bias and each coordinate's "
        "squared error is of order mp/n + σ²ρ²/n², from above and below.",
        "mechanisms/histograms",
    ),
    Statement(
        "element-loss",
        "eqn:element-loss, eqn:element-risk",
        "Averaging losses within each element and summing over the user's elements makes the loss insensitive to "
        "any one element.",
        "learning/training",
    ),
    Statement(
        "alg-1",
        "Algorithm 1 (algorithm:on-device-update)",
        "One projected gradient step per element, clipped to ρ and summed: element sensitivity at most 2ρ, "
        "global sensitivity at most 2(K∧M)ρ.",
        "learning/training",
    ),
    Statement(
        "private-sgd",
        "eqn:private-element-sgd",
        "Subtracting the noisy sum of Algorithm 1's updates descends the element-level risk.",
        "learning/training",
    ),
    Statement(
        "sgd-privacy",
        "corollary:all-thetas-are-pretty-private, corollary:all-thetas-user-level, eqn:epsilon-level-sgd",
        "All T iterates together are (Tε_α(q,σ), α)-Rényi element-private, and user-private with σ/(K∧M).",
        "learning/training",
    ),
    Statement(
        "normality",
        "theorem:normality and its five lemmas",
        "The averaged iterate of noisy SGD on a fixed sample is asymptotically normal with covariance "
        "H⁻¹(Σ + (Σ + σ²Σ_z)/γ)H⁻¹.",
        "learning/asymptotics",
    ),
    Statement(
        "private-normality",
        "proposition:private-normality",
        "The private iteration is asymptotically normal with covariance H⁻¹(Σ + (Σ/m + ρ²σ²I/m²)/γ)H⁻¹, and private.",
        "learning/private-estimation",
    ),
    Statement(
        "glm",
        "the example on generalized linear models",
        "In a GLM any partition into elements leaves θ* where it was; the information may go up or down.",
        "learning/private-estimation",
    ),
    Statement(
        "exp-histogram",
        "Section 4.1 (fig:exp_reddit)",
        "Finer partitions of the words give better private histograms, with gaps roughly linear on a log scale.",
        "experiments/words",
    ),
    Statement(
        "exp-logistic",
        "Section 4.2 (fig:logistic-simulation)",
        "More elements per user lower the element-private error while user-level error hardly changes.",
        "experiments/logistic",
    ),
    Statement(
        "exp-flickr",
        "Section 4.3 (fig:flickr)",
        "Element-private accuracy grows with the number of clusters and diversity; user-level at ε=1 is worst.",
        "experiments/photos",
    ),
    Statement(
        "exp-cifar",
        "Section 4.4 (fig:cifar10)",
        "Element-level training at ε=3 with 8,000 diverse users nearly equals non-private accuracy; "
        "user-level is at least 15 points behind.",
        "experiments/cifar",
    ),
)

CATALOGUE: dict[str, Statement] = {statement.id: statement for statement in _STATEMENTS}
"""The statements by id, in the paper's order."""
