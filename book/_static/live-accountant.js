/* The accountant of the live pages: an upper bound of the true ε, computed in the page.
 *
 * It follows elementdp.privacy, where the proofs are. One step of a run is dominated by a pair of Gaussian mixtures on
 * the line. The curve of that pair is joined by chords ("connect the dots"), which can only raise it; T steps are
 * composed by a Fourier transform; and whatever is cut off or rounded is added to δ. So the answer is a bound.
 */
(function () {
"use strict";

const ROUND = 2.220446049250313e-16;
const ROOT2 = Math.SQRT2, ROOT_2PI = Math.sqrt(2 * Math.PI);

/* ---------- Gaussian tails ---------- */

/** e^{x²}·erfc(x), to about fourteen digits. */
function erfcx(x) {
  if (x < 0) return 2 * Math.exp(x * x) - erfcx(-x);
  if (x < 2) {  // erf is a series of positive terms
    let term = x, sum = x;
    for (let n = 1; term > 1e-18 * sum; n += 1) sum += term *= 2 * x * x / (2 * n + 1);
    return Math.exp(x * x) - 2 / Math.sqrt(Math.PI) * sum;
  }
  let fraction = x;  // a continued fraction, from its end
  for (let n = Math.ceil(20 + 240 / (x * x)); n > 0; n -= 1) fraction = x + n / 2 / fraction;
  return 1 / (Math.sqrt(Math.PI) * fraction);
}

const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

/** Φ(−z), accurate in the tail. */
const upperTail = (z) => z < -6 ? 1 : 0.5 * Math.exp(-z * z / 2) * erfcx(z / ROOT2);

/** δ(ε) of N(μ, 1) against N(0, 1): Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ). */
function gaussianDelta(epsilon, mu) {
  if (mu === 0) return 0;
  const near = epsilon / mu - mu / 2, far = epsilon / mu + mu / 2, scale = 0.5 * Math.exp(-near * near / 2);
  if (near < -5) return 1 - scale * (erfcx(-near / ROOT2) + erfcx(far / ROOT2));
  return scale * (erfcx(near / ROOT2) - erfcx(far / ROOT2));
}

/** Where a falling function has fallen to zero, from the right: never too small. `high` has to be on the right. */
function fallen(f, low, high, near) {
  let left = f(low), right = f(high), side = 0;
  if (left <= 0) return low;
  for (let i = 0; i < 200 && high - low > near * Math.abs(high); i += 1) {
    let x = (low * right - high * left) / (right - left);  // regula falsi, after Illinois
    if (!(x > low && x < high) || i % 8 === 7) x = (low + high) / 2;
    const value = f(x);
    if (value > 0) {
      low = x; left = value;
      if (side === 1) right /= 2;
      side = 1;
    } else {
      high = x; right = value;
      if (side === -1) left /= 2;
      side = -1;
    }
  }
  return high;
}

function rising(f, start, most) {
  let high = start;
  while (f(high) > 0) {
    if (high >= most) return Infinity;
    high = Math.min(2 * high, most);
  }
  return high;
}

/** The ε at which a falling curve δ(ε) is at most `delta`. */
function epsilonOf(curve, delta) {
  const excess = (epsilon) => Math.log(Math.max(curve(epsilon), 1e-300) / delta);
  return excess(0) <= 0 ? 0 : fallen(excess, 0, rising(excess, 1, 1e9), 1e-10) * (1 + 1e-8);
}

const gaussianEpsilon = (delta, mu) => epsilonOf((epsilon) => gaussianDelta(epsilon, mu), delta);

/** The largest μ = sensitivity/noise whose Gaussian mechanism is (ε, δ)-private. */
function gaussianMu(epsilon, delta) {
  const excess = (sigma) => Math.log(Math.max(gaussianDelta(epsilon, 1 / sigma), 1e-300) / delta);
  let low = 1;
  while (excess(low) <= 0) low /= 2;
  return 1 / fallen(excess, low, rising(excess, 2 * low, 1e12), 1e-12);
}

/* ---------- Participation revealed: δ(ε) = E δ_Gauss(ε; change·√J/σ), J ~ Bin(T, q) ---------- */

function revealedEpsilon(delta, q, sigma, steps, change) {
  const mode = Math.min(steps, Math.floor((steps + 1) * q)), odds = q / (1 - q), least = 1e-9 * delta;
  const weights = [1], counts = [mode];
  let total = 1, weight = 1, j = mode;
  // Relative to the weight of the mode. What is left above j is less than a geometric series.
  let tail = 0;
  while (j < steps) {
    const ratio = (steps - j) / (j + 1) * odds;
    if (ratio < 1 && (tail = weight * ratio / (1 - ratio)) < least) break;
    j += 1; weight *= ratio; total += weight;
    weights.push(weight); counts.push(j);
    tail = 0;
  }
  // Below: fewer drawn steps show less, so the rest may count as the last one.
  for (j = mode, weight = 1; j > 0;) {
    weight *= j / (steps - j + 1) / odds; j -= 1;
    const rest = j / (steps - j + 1) / odds;
    total += weight;
    const last = rest < 1 && weight * rest / (1 - rest) < least;
    weights.push(last ? weight / (1 - rest) : weight); counts.push(j);
    if (last) break;
  }
  const curve = (epsilon) => {
    let sum = tail;
    for (let i = 0; i < counts.length; i += 1) {
      sum += weights[i] * gaussianDelta(epsilon, change * Math.sqrt(counts[i]) / sigma);
    }
    return sum / total * (1 + 1e-12 * counts.length);
  };
  return epsilonOf(curve, delta);
}

/* ---------- One step: the pair that dominates it (elementdp.privacy: domination) ---------- */

/** How the answer is known, and the swing and change of the worst step, in units of ρ. */
function worstCase(run) {
  const bound = run.elements;  // null: any number
  if (run.unit === "user" && bound === null) return { how: "refused" };
  const size = run.unit === "user" ? bound : 1, change = 2 * size;
  if (run.q === 1) return { how: "gaussian", swing: change, change };
  if (run.sampler === "poisson-pairs") return { how: size > 1 ? "counted" : "pair", swing: size, change };
  if (bound === null) return { how: "revealed", swing: Infinity, change };
  const swing = run.sampler === "fixed-users" ? 2 * bound : bound;
  return { how: change === 2 * swing ? "pair" : "symmetrised", swing, change };
}

/** Pairs (1−q)N(0)+qN(s) against (1−q)N(0)+qN(t), noise 1, one of which is drawn with its weight and shown. */
function pairs(run, worst, least) {
  const sigma = run.sigma, single = (q, stay, s, t) => ({ weight: 1, q, stay, s: s / sigma, t: t / sigma });
  if (worst.how !== "counted") {
    return { parts: [single(run.q, 1 - run.q, worst.swing, worst.swing - worst.change)], lost: 0 };
  }
  // A whole user under pair sampling: the number j of shown coins is given away. A larger j shows more, so nearby
  // numbers count as the largest of them; what is rarer than `least` is given up altogether.
  const size = run.elements, rate = -Math.expm1(size * Math.log1p(-run.q)), stay = 1 - rate;
  const parts = [], width = Math.max(1, Math.floor(0.004 * size * run.q));
  let lost = 0, waiting = 0;
  let log = size * Math.log1p(-run.q) - Math.log(rate);  // of the chance of j, given that any shows
  for (let j = 1; j <= size; j += 1) {
    log += Math.log((size - j + 1) / j) + Math.log(run.q / (1 - run.q));
    const weight = Math.exp(log) * (1 + 1e-12 * size);
    if (weight < least && j > size * run.q) { lost += weight; continue; }
    waiting += weight;
    if (j % width === 0 || j === size || waiting < least) {
      if (waiting >= least || j === size) {
        parts.push({ ...single(rate, stay, j, -j), weight: waiting });
        waiting = 0;
      }
    }
  }
  return { parts, lost: lost + waiting };
}

/** log of the density of (1−q)N(0)+qN(mean) over that of N(0). */
function logRatio(part, mean, u) {
  const power = mean * u - mean * mean / 2;
  const excess = part.q * Math.expm1(Math.min(power, 600));
  if (power < 600 && excess > -0.5) return Math.log1p(excess);
  if (power > 0) return Math.log(part.q) + power + Math.log1p(part.stay / part.q * Math.exp(-power));
  return Math.log(part.stay + part.q * Math.exp(power));
}

const loss = (part, u) => logRatio(part, part.s, u) - logRatio(part, part.t, u);

/** The derivative of the log ratio: mean times the chance, given u, of not being at zero. */
function climb(part, mean, u) {
  return mean / (1 + part.stay / part.q * Math.exp(mean * mean / 2 - mean * u));
}

/** Outcomes with a positive loss, where the first law has its mass; there the loss rises. */
function windows(part, reach) {
  const start = (part.s + part.t) / 2, far = part.s - reach, found = [];
  if (far > reach) {
    if (start < reach) found.push([start, reach]);
    found.push([Math.max(start, far), part.s + reach]);
  } else found.push([start, part.s + reach]);
  return found;
}

/* ---------- The lattice: chords of the curve ---------- */

/* Knots are at h·k. Cells are h wide near 0 and at most a sixteenth (over `fine`) of their loss further out, where the
 * error of a chord counts less. Only positive losses are cut: the pair is symmetrised, with a mass e^{-x}·m at −x for each mass
 * m at x, and what is left is at 0. (A pair that is symmetric already stays what it is.) */
const stride = (k, fine) => k < 32 * fine ? 1 : 2 ** (Math.floor(Math.log2(k / fine)) - 4);
const NODES = [0, 0.5384693101056831, -0.5384693101056831, 0.906179845938664, -0.906179845938664];
const WEIGHTS = [128 / 225, 0.4786286704993665, 0.4786286704993665, 0.2369268850561891, 0.2369268850561891];

function lattice(law, h, fine, reach) {
  const top = Math.max(...law.parts.map((part) => loss(part, part.s + reach)));
  const knots = [0];
  while (knots[knots.length - 1] * h <= top) {
    const last = knots[knots.length - 1];
    knots.push(last + stride(last, fine));
  }
  knots.push(knots[knots.length - 1] + stride(knots[knots.length - 1], fine));
  const mass = new Float64Array(knots.length);
  for (const part of law.parts) {
    for (const [low, high] of windows(part, reach)) cut(part, low, high, h, knots, mass);
  }
  return { h, knots, mass };
}

function cut(part, low, high, h, knots, mass) {
  let place = 0, u = low;
  const start = Math.max(0, loss(part, low)), end = loss(part, high);
  while (knots[place + 1] * h < start) place += 1;
  for (; u < high; place += 1) {
    const next = knots[place + 1] * h;
    const until = next >= end ? high : outcome(part, next, u, high, h);
    split(part, u, until, place, h, knots, mass);
    u = until;
  }
}

/** The outcome between `low` and `high` at which the loss is `target`: Newton's method, kept inside by bisection. */
function outcome(part, target, low, high, h) {
  let u = low;
  for (let i = 0; i < 80; i += 1) {
    const value = loss(part, u) - target;
    if (Math.abs(value) <= 1e-11 * h + 1e-15 * target) break;
    if (value < 0) low = u; else high = u;
    const newton = u - value / (climb(part, part.s, u) - climb(part, part.t, u));
    u = newton > low && newton < high ? newton : (low + high) / 2;
  }
  return u;
}

/** Send the mass between two outcomes to the knots of its cell, so that the second law's mass is kept as well. */
function split(part, low, high, place, h, knots, mass) {
  const x = knots[place] * h, width = knots[place + 1] * h - x;
  const pieces = Math.max(1, Math.ceil((high - low) * Math.max(10, Math.min(part.s, 60))));
  const half = (high - low) / pieces / 2, whole = -Math.expm1(-width);
  for (let i = 0; i < pieces; i += 1) {
    for (let n = 0; n < 5; n += 1) {  // Gauss and Legendre's rule; its error is below 1e-12 here
      const u = low + half * (2 * i + 1 + NODES[n]), first = logRatio(part, part.s, u);
      const all = part.weight * half * WEIGHTS[n] / ROOT_2PI * Math.exp(first - u * u / 2);
      const offset = clamp(first - logRatio(part, part.t, u) - x, 0, width);
      const up = all * -Math.expm1(-offset) / whole;
      mass[place] += all - up;
      mass[place + 1] += up;
    }
  }
}

/** The law on the whole lattice, tilted by e^{tilt·x} and scaled to one. */
function tilted(cells, tilt) {
  const { h, knots, mass } = cells, size = knots.length, index = new Float64Array(2 * size - 1);
  const p = new Float64Array(2 * size - 1);
  let zero = 1, top = 0;
  for (let k = 1; k < size; k += 1) {
    if (mass[k] > 0) top = Math.max(top, tilt * knots[k] * h + Math.log(mass[k]));
    zero -= mass[k] * (1 + Math.exp(-knots[k] * h));
  }
  let total = 0;
  for (let k = 0; k < size; k += 1) {
    const x = knots[k] * h;
    index[size - 1 + k] = knots[k]; index[size - 1 - k] = -knots[k];
    if (k === 0) p[size - 1] = Math.max(0, zero) * Math.exp(-top);
    else if (mass[k] > 0) {
      p[size - 1 + k] = Math.exp(Math.log(mass[k]) + tilt * x - top);
      p[size - 1 - k] = Math.exp(Math.log(mass[k]) - (1 + tilt) * x - top);
    }
  }
  for (const value of p) total += value;
  for (let i = 0; i < p.length; i += 1) p[i] /= total;
  return { index, p, h, tilt, logScale: top + Math.log(total) };
}

/* ---------- Composition ---------- */

const LONGEST = 17;  // log2 of the longest transform that is still refined

/** An interval of the index that holds all but `folded` of the T-fold tilted law, by Chernoff's inequality. */
function holding(law, steps, folded) {
  let mean = 0, square = 0, least = 0, most = 0;
  law.index.forEach((k, i) => { mean += law.p[i] * k; });
  law.index.forEach((k, i) => {
    square += law.p[i] * (k - mean) ** 2;
    if (law.p[i] > 0) { least = Math.min(least, k - mean); most = Math.max(most, k - mean); }
  });
  const deviation = Math.max(Math.sqrt(steps * square), 1), budget = -Math.log(folded / 2);
  const far = (sign) => {
    let best = steps * (sign > 0 ? most : -least);
    for (const angle of [0.05, 0.15, 0.5, 1, 2, 4, 7]) {
      const turn = sign * angle / deviation;
      let sum = 0;
      law.index.forEach((k, i) => { if (law.p[i] > 0) sum += law.p[i] * Math.exp(turn * (k - mean)); });
      best = Math.min(best, (steps * Math.log(sum) + budget) * deviation / angle);
    }
    return best;
  };
  return { mean, low: steps * mean - far(-1), high: steps * mean + far(1), folded };
}

const twiddles = {};

/** The discrete Fourier transform in place; the length is a power of two. */
function transform(re, im) {
  const size = re.length;
  if (!twiddles[size]) {
    const c = new Float64Array(size / 2), s = new Float64Array(size / 2);
    for (let k = 0; k < size / 2; k += 1) {
      c[k] = Math.cos(2 * Math.PI * k / size);
      s[k] = -Math.sin(2 * Math.PI * k / size);
    }
    twiddles[size] = { c, s };
  }
  const { c, s } = twiddles[size];
  for (let i = 1, j = 0; i < size; i += 1) {
    let bit = size >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) {
      let swap = re[i]; re[i] = re[j]; re[j] = swap;
      swap = im[i]; im[i] = im[j]; im[j] = swap;
    }
  }
  for (let half = 1; half < size; half *= 2) {
    const step = size / (2 * half);
    for (let block = 0; block < size; block += 2 * half) {
      for (let a = block, turn = 0; a < block + half; a += 1, turn += step) {
        const b = a + half, x = re[b] * c[turn] - im[b] * s[turn], y = re[b] * s[turn] + im[b] * c[turn];
        re[b] = re[a] - x; im[b] = im[a] - y;
        re[a] += x; im[a] += y;
      }
    }
  }
}

/** The curve of T steps: log of an upper bound of δ at losses start + h·k. */
function compose(law, steps, lost, { mean, low, high, folded }) {
  const { h, tilt } = law;
  const size = 2 ** Math.max(6, Math.ceil(Math.log2(high - low + 4)));
  const centre = Math.round(mean), first = Math.floor(low) - steps * centre;
  const shift = ((first % size) + size) % size;
  const re = new Float64Array(size), im = new Float64Array(size);
  law.index.forEach((k, i) => { re[(k - centre) & (size - 1)] += law.p[i]; });
  transform(re, im);
  let strength = 0;
  const quiet = Math.exp(-100 / steps);  // below, the T-th power is less than e^{-50}
  for (let k = 0; k < size; k += 1) {
    const square = re[k] * re[k] + im[k] * im[k];
    if (square > quiet) {
      const power = Math.exp(steps * 0.5 * Math.log(square)), turn = steps * Math.atan2(im[k], re[k]);
      strength += power;
      // Exchanging the parts turns the transform into its inverse.
      re[k] = power * Math.sin(turn); im[k] = power * Math.cos(turn);
    } else re[k] = im[k] = 0;
  }
  transform(re, im);
  // Each of log2(size) layers adds at most a few roundings, T times over; see elementdp.privacy: transform.
  const rounding = ROUND * (1 + steps) * 16 * Math.log2(size) * strength / size + Math.exp(-50);
  const error = rounding / (h * tilt * (1 + tilt)) * (1 + h * (1 + tilt)) + folded;
  const decay = Math.exp(-tilt * h), drop = Math.exp(-h), bounds = new Float64Array(size);
  let sum = 0, weighted = 0;
  for (let k = size - 1; k >= 0; k -= 1) {  // Σ_{j>k} w_j e^{−τu}(1−e^{−u}), u = (j−k)h
    const density = k + 1 < size ? im[(shift + k + 1) & (size - 1)] / size : 0;
    sum = decay * sum + decay * -Math.expm1(-h) * (density + weighted);
    weighted = decay * drop * (density + weighted);
    bounds[k] = Math.max(sum, 0) + error;
  }
  const start = h * (steps * centre + first), scale = steps * law.logScale + steps * 2e-12;
  const logDelta = (k) => Math.log(Math.exp(scale - tilt * (start + h * k) + Math.log(bounds[k])) + lost);
  return { start, h, size, logDelta };
}

/** Where the curve falls to e^target: chords in e^ε between knots. ±Infinity if that is outside the window. */
function crossing(curve, target) {
  let low = 0, high = curve.size - 1;
  if (curve.logDelta(high) > target) return Infinity;
  if (curve.logDelta(low) <= target) return -Infinity;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (curve.logDelta(middle) > target) low = middle; else high = middle;
  }
  const left = curve.logDelta(low), right = curve.logDelta(high);
  const share = Math.expm1(target - left) / Math.expm1(right - left);
  return curve.start + curve.h * low + Math.log1p(share * Math.expm1(curve.h));
}

/* ---------- Planning: the tilt and the lattice, from a rough sample of the loss ---------- */

const TOLERANCE = 2e-3;  // aimed-at relative error of ε

function sample(law, reach) {
  const losses = [], masses = [], step = law.parts.length > 4 ? 0.25 : 0.05;
  for (const part of law.parts) {
    for (const [low, high] of windows(part, reach)) {
      const count = Math.ceil((high - low) / step), wide = (high - low) / count;
      for (let i = 0; i < count; i += 1) {
        const u = low + (i + 0.5) * wide;
        losses.push(loss(part, u));
        masses.push(part.weight * wide / ROOT_2PI * Math.exp(logRatio(part, part.s, u) - u * u / 2));
      }
    }
  }
  return { losses, masses };
}

/** log E e^{tL} of the symmetrised law. */
function cumulant({ losses, masses }, t) {
  let sum = 0;
  for (let i = 0; i < losses.length; i += 1) {
    if (masses[i] > 0) {
      sum += masses[i] * (Math.expm1(t * losses[i]) + Math.exp(-losses[i]) * Math.expm1(-t * losses[i]));
    }
  }
  return Math.log1p(sum);
}

const chernoff = (points, steps, t) => steps * cumulant(points, t) + t * Math.log(t) - (1 + t) * Math.log1p(t);

/** A smaller tilt at which Chernoff's bound on δ(ε) is hardly worse: rare large losses then stay rare. */
function gentler(points, steps, tilt, epsilon, target) {
  const bound = (t) => chernoff(points, steps, t) - t * epsilon, most = Math.max(bound(tilt), target) + 7;
  let t = tilt;
  while (t > tilt / 16 && bound(t / 1.4) < most) t /= 1.4;
  return t;
}

/** The tilt that minimises `objective(tilt, log of Chernoff's bound on δ(0))`. */
function saddle(points, steps, objective) {
  const value = (log) => {
    const found = objective(Math.exp(log), chernoff(points, steps, Math.exp(log)));
    return Number.isFinite(found) ? found : Infinity;
  };
  let best = 0, least = Infinity;
  for (let log = -5; log <= 16; log += 0.75) {
    const found = value(log);
    if (found < least) { least = found; best = log; }
  }
  let low = best - 0.75, high = best + 0.75;
  for (let i = 0; i < 9; i += 1) {
    const a = low + 0.382 * (high - low), b = low + 0.618 * (high - low);
    if (value(a) < value(b)) high = b; else low = a;
  }
  const log = (low + high) / 2;
  return { tilt: Math.exp(log), value: value(log) };
}

/** The distance of the knots: as wide as a relative error of about TOLERANCE in ε allows. */
function spacing({ losses, masses }, steps, tilt, epsilon) {
  let total = 0, square = 0;
  const p = losses.map((x, i) => {
    const up = masses[i] * Math.exp(tilt * x), down = masses[i] * Math.exp(-(1 + tilt) * x);
    total += up + down - masses[i] * (1 + Math.exp(-x));
    square += (up + down) * x * x;
    return up + down;
  });
  total += 1;
  const spread = Math.sqrt(steps * square / total);
  const allowed = TOLERANCE * Math.max(epsilon, Math.min(0.05 * spread, 0.05 / tilt)) * 2 / (steps * (1 + tilt));
  const error = (h) => {
    let sum = 0;
    losses.forEach((x, i) => {
      const wide = h * stride(Math.floor(x / h), 1), offset = x % wide;
      sum += p[i] * offset * (wide - offset);
    });
    return sum / total;
  };
  let h = Math.sqrt(6 * allowed);
  for (let i = 0; i < 12 && error(2 * h) < allowed; i += 1) h *= 2;
  return h;
}

/** The ε of T steps of a law at δ: an upper bound. */
function composedEpsilon(run, worst, delta) {
  const steps = run.steps, target = Math.log(delta);
  const law = pairs(run, worst, 1e-7 * delta / steps);
  const apart = worst.how === "counted" ? law.parts[0].q : run.q;
  if (-Math.expm1(steps * Math.log1p(-apart)) <= delta * (1 - 1e-9)) return 0;  // the laws differ that rarely
  const reach = Math.sqrt(2 * (Math.log(steps) - target + Math.log(1e6)));
  const lost = steps * (2 * upperTail(reach) + law.lost), points = sample(law, reach);
  let { tilt, value: epsilon } = saddle(points, steps, (t, bound) => (bound - target) / t);
  epsilon = Math.max(epsilon, 1e-9);
  let best = Infinity, fine = 0.5, before = Infinity;
  for (let attempt = 0; attempt < 10; attempt += 1) {
    const gentle = gentler(points, steps, tilt, epsilon, target);
    let h = spacing(points, steps, tilt, Math.max(epsilon, SMALLEST)) / fine, cells, lossLaw, room;
    for (;; h *= 2) {
      cells = lattice(law, h, 2 * fine, reach);
      lossLaw = tilted(cells, gentle);
      // What falls outside the window is added to δ: a ten-thousandth of it may.
      const share = target + gentle * epsilon - steps * lossLaw.logScale;
      room = holding(lossLaw, steps, 1e-4 * Math.exp(clamp(share, -23, 0)));
      if (room.high - room.low < 2 ** (LONGEST + 1) - 4) break;
    }
    let differ = lost;  // T steps tell the two apart at most T times as well as one
    cells.mass.forEach((mass, k) => { differ += steps * mass * -Math.expm1(-cells.knots[k] * h); });
    if (differ <= delta) return 0;
    const curve = compose(lossLaw, steps, lost, room), found = crossing(curve, target);
    if (found === -Infinity && curve.start <= 0) return 0;
    const bound = found === -Infinity ? curve.start : found, top = cells.knots[cells.knots.length - 1] * h;
    best = Math.min(best, bound + steps * (2e-15 * top + 1e-11 * h));
    if (fine < 1 && (found < 0.6 * epsilon || found > 1.7 * epsilon) && attempt < 6) {  // a pilot that missed
      epsilon = found < epsilon ? Math.max(found, epsilon / 4) : Math.min(found, epsilon * 4);
      tilt = saddle(points, steps, (t, bound) => bound - t * epsilon).tilt;
      if (epsilon > SMALLEST / 4) continue;
    }
    // Every lattice gives a bound. A finer one is tried until that hardly helps.
    if (before - best < 6e-3 * best || best < SMALLEST || curve.size >= 2 ** LONGEST || fine > 8) break;
    before = epsilon = best; fine *= 2;
  }
  return Math.max(0, best);
}

const SMALLEST = 1e-3;

/** The ε to promise at δ: an upper bound of the true one. NaN where nothing is proved. */
function account(run, delta) {
  const worst = worstCase(run);
  if (worst.how === "refused") return NaN;
  if (worst.how === "gaussian") return gaussianEpsilon(delta, worst.change * Math.sqrt(run.steps) / run.sigma);
  const revealed = () => revealedEpsilon(delta, run.q, run.sigma, run.steps, worst.change);
  if (worst.how === "revealed") return revealed();
  // What holds of users with any number of elements holds of those with few.
  if (worst.how === "symmetrised") {
    return worst.swing / run.sigma > 60 ? revealed() : Math.min(composedEpsilon(run, worst, delta), revealed());
  }
  return composedEpsilon(run, worst, delta);
}

/* ---------- What the paper would print: Rényi orders and Mironov's rule ---------- */

function logMixture(z, mean, q, sigma) {
  const power = (mean * z - mean * mean / 2) / (sigma * sigma);
  if (q === 1) return power;
  return power > 0
    ? Math.log(q) + power + Math.log1p(Math.exp(-power) * (1 - q) / q)
    : Math.log1p(q * Math.expm1(power));
}

/** D_α of (1−q)N(0)+qN(a) against (1−q)N(0)+qN(b), noise σ: a trapezoidal sum over where the integrand can peak. */
function renyi(order, q, sigma, a, b) {
  const reach = 11 * sigma, step = Math.min(sigma / 4, sigma * sigma / (3 * Math.max(1, Math.abs(a), Math.abs(b))));
  const modes = [Math.min(a, b, 0), 0, Math.max(a, b, 0), order * a, (1 - order) * b, order * a + (1 - order) * b];
  modes.sort((x, y) => x - y);
  const whole = (modes[5] - modes[0]) / step < 1e4, points = [];
  let top = 0, k = -Infinity;
  modes.forEach((mode, i) => {
    const until = whole && i < 5 ? Math.max(mode, modes[i + 1]) : mode + reach;
    for (k = Math.max(k, Math.ceil((mode - reach) / step)); k * step <= until; k += 1) {
      const z = k * step, base = -z * z / (2 * sigma * sigma);
      const first = logMixture(z, a, q, sigma), second = logMixture(z, b, q, sigma);
      top = Math.max(top, base + order * first + (1 - order) * second);
      points.push([base, first, second]);
    }
  });
  // E_B (A/B)^α − 1, less the density αA + (1−α)B, which integrates to 1: small levels keep their digits.
  let sum = 0;
  for (const [base, first, second] of points) {
    const ratio = first - second, power = base + order * first + (1 - order) * second;
    if (top > 300) sum += Math.exp(power - top);
    else if (order * Math.abs(ratio) < 1) {
      sum += Math.exp(base + second) * (Math.expm1(order * ratio) - order * Math.expm1(ratio));
    } else sum += Math.exp(power) - order * Math.exp(base + first) - (1 - order) * Math.exp(base + second);
  }
  sum *= step / (sigma * ROOT_2PI);
  return Math.max(0, (top > 300 ? top + Math.log(sum) : Math.log1p(sum)) / (order - 1));
}

/** The ε the paper would print: inf over α of T·ε_α(q, σ) + log(1/δ)/(α−1). Not a guarantee. */
function claimed(run, delta) {
  if (run.unit === "user" && run.elements === null) return Infinity;
  const sigma = run.unit === "user" ? run.sigma / run.elements : run.sigma;
  const at = (log) => {
    const order = 1 + Math.exp(log);
    return run.steps * renyi(order, run.q, sigma, 1, -1) - Math.log(delta) / (order - 1);
  };
  const centre = Math.log(sigma) + 0.5 * Math.log(-Math.log(delta) / (2 * run.steps));
  let low = centre - 4, high = centre + 4 - Math.log(run.q), best = low, least = Infinity;
  const grid = (high - low) / 18;
  for (let log = low; log <= high; log += grid) {
    const value = at(log);
    if (value < least) { least = value; best = log; }
  }
  low = best - grid; high = best + grid;
  for (let a = low + 0.382 * (high - low), b = low + 0.618 * (high - low), x = at(a), y = at(b), i = 0; i < 14; i += 1) {
    least = Math.min(least, x, y);
    if (x < y) { high = b; b = a; y = x; a = low + 0.382 * (high - low); x = at(a); }
    else { low = a; a = b; x = y; b = low + 0.618 * (high - low); y = at(b); }
  }
  return least;
}

/* ---------- The noise for a target, and the box in which all this is tested ---------- */

/** The least σ, rounded up, for which `count(run, delta)` is at most `epsilon`; Infinity beyond the box. */
function noise(count, run, epsilon, delta) {
  const excess = (log) => Math.log(Math.max(count({ ...run, sigma: Math.exp(log) }, delta), 1e-9) / epsilon);
  const size = run.unit === "user" ? run.elements : 1, [least, most] = BOX.sigma.map((s) => Math.log(size * s));
  let guess = clamp(Math.log(run.sigma), least, most), low = guess, high = guess, step = 0.5;
  let value = excess(guess);
  if (Number.isNaN(value)) return NaN;
  while (value > 0) {
    if (high >= most) return Infinity;
    low = high;
    high = Math.min(high + Math.max(step, 0.9 * value), most); step *= 2;
    value = excess(high);
  }
  for (step = 0.5; low === high || excess(low) <= 0; step *= 2) {
    if (low <= least) return Math.exp(least);
    high = low;
    low = Math.max(low - step, least);
  }
  // Shift so that the relative accuracy asked for is one of σ.
  return Math.exp(fallen((x) => excess(x - 100), low + 100, high + 100, 2e-6) - 100);
}

/** Where the bound has been compared with the package; outside, the page shows the command instead. For whole users σ
 * is per element. */
const BOX = {
  q: [1e-4, 1], steps: [1, 1e5], sigma: [0.3, 1000], delta: [1e-10, 1e-2], elements: [1, 1000],
};

window.elementdp = {
  account, claimed, noise, renyi, gaussianDelta, gaussianMu, clamp, BOX, SMALLEST,
};
})();
