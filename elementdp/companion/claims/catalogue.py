"""Every statement the book settles: its number and label in the paper, what it says in our words, where we treat it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Statement:
    """A statement of the paper.

    ``number`` is what a reader of the paper finds in print, ``title`` a few words for it, ``label`` the name its source
    gives it (empty for running text), ``section`` the page of the book that settles it.
    """

    id: str
    number: str
    title: str
    label: str
    section: str
    text: str


# A paragraph each: id | number | title, then label | section (the label is - if the source gives none), then the text.
_STATEMENTS = """
side-information | Section 1 | Any side information
- | foundations/definitions
  Element-level privacy inherits resilience to side information: whatever someone knows beforehand, the result changes
  their odds about one element by at most e^ε.

figure-1 | Figure 1 | Neighbouring conversations
fig:yo-bro | foundations/definitions
  The caption calls the three left conversations neighbouring, at distance 2.

def-dp | Definition 2.1 | Privacy for any distance
definition:dp | foundations/definitions
  (ε, δ)-privacy for any distance between samples; with the order-free Hamming distance it is the usual one.

def-rdp | Definition 2.2 | Rényi privacy for any distance
definition:renyi-dp | foundations/definitions
  (ε, α)-Rényi privacy for any distance between samples.

rdp-to-dp | Section 2.1, after Definition 2.2 | From Rényi to (ε, δ)
- | mechanisms/mechanisms
  (ε, α)-Rényi privacy implies (ε + log(1/δ)/(α-1), δ)-privacy for every δ.

gaussian-mech | Equation (1) and Appendix A | Gaussian noise for (ε, δ)
eqn:mironov-gaussian-mech | mechanisms/mechanisms
  Gaussian noise of variance ρ²(1{ε>1}/ε + 2 log(1/δ)/ε²) gives (ε, δ)-privacy for every ε > 0.

def-element | Definition 2.3, Equations (2) and (3) | Element-level privacy
definition:element-dp | foundations/definitions
  Users differ by the number of clusters in which their multisets differ; samples by the best matching of users. One
  cluster gives back user-level privacy.

post-processing | Corollary 2.1 | Post-processing
corollary:post-processing | foundations/properties
  Whatever is computed from a private output is as private.

group-privacy | Corollary 2.2 | Group privacy
corollary:group-privacy | foundations/properties
  At distance D an (ε, δ)-private mechanism is (Dε, D e^{(D-1)ε} δ)-indistinguishable.

composition-basic | Corollary 2.3, first part | Basic composition
corollary:composition | foundations/properties
  k adaptive (ε_i, δ_i)-private mechanisms together are (Σε, Σδ)-private.

composition-advanced | Corollary 2.3, second part | Advanced composition
corollary:composition | foundations/properties
  They are also (3/2 Σε² + √(6 Σε² log(1/δ₀)), δ₀ + Σ δ/(1+e^ε))-private for every δ₀ > 0.

composition-renyi | Corollary 2.3, third part | Rényi composition
corollary:composition | foundations/properties
  Rényi guarantees of one order add.

subsampling | Corollary 2.4 | Sampling users amplifies privacy
corollary:subsampling | accounting/subsampling
  Sampling users at rate q turns an (ε, δ)-element-private mechanism into a (log(1+q(e^ε-1)), qδ)-element-private one;
  so does drawing m of n users, with q = m/n.

moments-accountant | Corollary 2.5 | Rényi curve with sampled users
corollary:momentacc | accounting/subsampling
  The user-sampled Gaussian sum has the Rényi curve of the pair qP₁+(1-q)P₀, qP₋₁+(1-q)P₀, with Poisson or fixed-size
  sampling alike.

moments-display | Section 2.3, display after Corollary 2.5 | Bound on that Rényi curve
- | accounting/subsampling
  That curve is at most q²α/((1-q)σ²) + O(q³/σ³).

moments-rule | Section 2.3, rule after Corollary 2.5 | Noise for T sampled steps
- | accounting/subsampling
  For numerical constants c₀, c₁, T steps are (ε, δ)-element-private if ε ≤ c₀q²T and σ² ≥ c₁q²T log(1/δ)/ε².

f-privacy | Section 2.3, last sentence | Analogues in f-privacy
- | accounting/subsampling
  Each of the preceding corollaries has an analogue in f-differential privacy.

basic-mech | Equation (6) | Noise on an average
eqn:basic-mechanisms | mechanisms/mechanisms
  Laplace or Gaussian noise scaled to the element sensitivity makes an average over n users element-private.

heavy-hitters-privacy | Lemma 3.1 | Private counts of users
lemma:privacy-heavy-hitters | mechanisms/heavy-hitters
  Counting users per item with noise variance α/ε (Rényi) or the Gaussian formula (approximate) is element-private.

heavy-hitters-user | Section 3.1, after Lemma 3.1 | Their noise at user level
- | mechanisms/heavy-hitters
  The global sensitivity is √(2m), so user-level privacy takes the variance σ²_std, m times that of the lemma.

heavy-hitters-loss | Equation (8) | The ordering loss
eqn:heavyhittersloss | mechanisms/heavy-hitters
  The ordering loss counts pairs with p_j - p_l ≥ γ for which the estimate of j exceeds that of l.

heavy-hitters-utility | Proposition 1 | The gap that orders two items
proposition:heavyhitters | mechanisms/heavy-hitters
  The expected ordering loss is at most t² once γ exceeds the largest of three printed terms.

histogram-privacy | Lemma 3.2 | Private projected histogram
lem:dp-truncation-cluster | mechanisms/histograms
  Projecting each cluster of counts onto a ball of radius ρ and adding noise of standard deviation ρσ/n is
  element-private with the σ of the Gaussian mechanism.

histogram-utility | Proposition 2 | Error of that histogram
proposition:element-level-histogram | mechanisms/histograms
  With ρ ≥ 3mP(c) + 3 log m + t the projected histogram has exponentially small bias and each coordinate's squared
  error is of order mp/n + σ²ρ²/n², from above and below.

histogram-user | Section 3.2, after Proposition 2 | Its sensitivity at user level
- | mechanisms/histograms
  At user level the global sensitivity is ρ = m.

histogram-rate | Section 3.2, display after Proposition 2 | Its error with t = log n
- | mechanisms/histograms
  With t = log n the squared error is at most O(1) max{mp/n, σ²/n² [m²P(c)² + log²m + log²n]}.

element-loss | Equations (10) and (11) | The element-level loss
eqn:element-loss | learning/training
  Averaging losses within each element and summing over the user's elements makes the loss insensitive to any one
  element.

normality | Theorem 1, Section 3 | Limit law of noisy SGD
theorem:normality | learning/asymptotics
  The averaged iterate of noisy SGD on a fixed sample is asymptotically normal with covariance H⁻¹(Σ + (Σ +
  σ²Σ_z)/γ)H⁻¹.

alg-1 | Algorithm 1 | Sensitivity of one update
algorithm:on-device-update | learning/training
  One projected gradient step per element, clipped to ρ and summed: element sensitivity at most 2ρ, global sensitivity
  at most 2(K∧M)ρ.

private-sgd | Equation (15) | The private iteration
eqn:private-element-sgd | learning/training
  Subtracting the noisy sum of Algorithm 1's updates descends the element-level risk.

sgd-privacy | Corollary 3.1 | Training is element-private
corollary:all-thetas-are-pretty-private | learning/training
  All T iterates together are (Tε_α(q,σ), α)-Rényi element-private.

sgd-user-privacy | Corollary 3.2 | Training is user-private
corollary:all-thetas-user-level | learning/training
  All T iterates together are user-private with σ/(K∧M) in place of σ, with Poisson or fixed-size sampling alike.

sgd-rate | Equation (16) | ε of training, as a rate
eqn:epsilon-level-sgd | learning/training
  With q = m/n all T iterates are (O(1)ε, δ)-element-private, ε the infimum over α of Tq²(1+α)/σ² + log(1/δ)/α.

private-normality | Proposition 3, limit law | Limit law of private training
proposition:private-normality | learning/private-estimation
  The private iteration is an instance of Theorem 1: asymptotically normal with covariance H⁻¹(Σ + (Σ/m +
  ρ²σ²I/m²)/γ)H⁻¹.

private-element | Proposition 3 (i) | Its element-level privacy
proposition:private-normality | learning/private-estimation
  If σ² ≥ 2 all iterates together are (O(1)ε(σ), δ)-element-private, and ε(σ) goes to 0 as n grows.

private-user | Proposition 3 (ii) | Its user-level privacy
proposition:private-normality | learning/private-estimation
  If σ² ≥ (K∧M)²τ² and τ² ≥ 2 they are (O(1)ε(τ), δ)-private for whole users.

noise-factor | Section 3.3, after Proposition 3 | A factor K∧M less noise
- | learning/private-estimation
  For a given ε, element-level privacy takes a factor K∧M less noise than user-level privacy.

glm | Example 3, first claim | Partitions leave θ* in place
- | learning/private-estimation
  In a GLM any partition into elements leaves θ* where it was.

glm-risk | Example 3, second claim | Element-level risk of a GLM
- | learning/private-estimation
  The element-level risk is Σ_k p_k E[ℓ | X ∈ c_k], p_k the chance that a user has data in c_k.

glm-variance | Example 3, third claim | Partitions change the variance
- | learning/private-estimation
  Changing the partition can lower the asymptotic variance or raise it.

exp-histogram | Section 4.1, Figure 2 | Words: finer partitions win
fig:exp_reddit | experiments/words
  Finer partitions of the words give better private histograms, with gaps roughly linear on a log scale.

exp-logistic | Section 4.2, Figure 3 | Regression: more elements win
fig:logistic-simulation | experiments/logistic
  More elements per user lower the element-private error while user-level error hardly changes.

exp-flickr | Section 4.3, Figure 4 | Photos: more clusters win
fig:flickr | experiments/photos
  Element-private accuracy grows with the number of clusters and diversity; user-level at ε=1 is worst.

exp-cifar | Section 4.4, Figure 5 | CIFAR-10: near non-private
fig:cifar10 | experiments/cifar
  Element-level training at ε=3 with 8,000 diverse users nearly equals non-private accuracy; user-level is at least 15
  points behind.

indicator-lemma | Lemma B.1 | Moments of two indicators
lemma:indicator-properties | mechanisms/heavy-hitters
  E[Y_j Y_l] = q_j + q_l - q_jl and var(Y_j - Y_l) ≤ q_j + q_l for the indicators of two items.

order-lemma | Lemma B.2 | Chance to mis-order two items
lemma:order-error-bound | mechanisms/heavy-hitters
  The chance to mis-order two items is at most exp(-min{5n(q_i-q_j)²/(12v + 20σ²/n), n(q_i-q_j)/8}).

binomial-lemma | Lemma C.1 | Sums of binomial tails
lemma:binbound | mechanisms/histograms
  For X ~ Bin(m, p), p ≤ 1/4 and l ≥ 3mp: Σ_{i≥l} P(X ≥ i) ≤ 2P(X ≥ l) ≤ 4P(X = l).

bias-lemma | Lemma C.2 | Binomial mass at the radius
lemma:biasbound | mechanisms/histograms
  For l = 3mp + 3 log m + t and m ≥ 3: P(X = ⌈l⌉) ≤ p 2^{-t}; the proof uses 2^{-2 log m} ≤ m^{-2}.

good-event | Appendix D, event E_n | Samples are good in the end
sec:proof-normality | learning/asymptotics
  There is a finite random N such that for all n ≥ N the sample is good: averages of L_a² at most twice their mean,
  curvature at least λ near θ*.

recursion-lemma | Lemma D.1 | Recursion of the iterates
lemma:convergence-of-iterates | learning/asymptotics
  E[δ²_{k+1}] ≤ (1 - c₀α_k) δ²_k + α²_k E[L₀²], and E[δ²_k] ≤ C α_k log k.

remainder-lemma | Lemma D.2 | Linearisation errors vanish
lemma:remainders-go-to-zero | learning/asymptotics
  The remainders of the risk's linearisation, summed and divided by √k, vanish.

local-lemma | Lemma D.3 | Local gradient errors vanish
lemma:local-grad-errors-go-to-zero | learning/asymptotics
  The localised gradient errors, summed with B_i and divided by √k, vanish.

model-lemma | Lemma D.4 | Errors of the model vanish
lemma:subgrad-errors-go-to-zero | learning/asymptotics
  The errors of the model of the loss, summed and divided by √k, vanish.

matrix-lemma | Lemma D.5 | Errors of the matrices vanish
lemma:matrix-inverse-errors-go-to-zero | learning/asymptotics
  What A_i = B_i - H⁻¹ makes of gradient noise and privacy noise, summed and divided by √k, vanishes.
"""


def _statement(paragraph: str) -> Statement:
    first, second, text = paragraph.strip().split("\n", 2)
    name, number, title = first.split(" | ")
    label, section = second.split(" | ")
    return Statement(name, number, title, label if label != "-" else "", section, " ".join(text.split()))


CATALOGUE: dict[str, Statement] = {one.id: one for one in map(_statement, _STATEMENTS.split("\n\n"))}
"""The statements by id, in the paper's order."""
