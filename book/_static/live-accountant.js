/* The accountant of the live pages: an upper bound of the true ε, computed in the page.
 *
 * It follows elementdp.privacy, where the proofs are. One step is dominated by a pair of Gaussian mixtures on the line.
 * Chords ("connect the dots") can only raise its curve; T steps are composed by a Fourier transform; and what is cut
 * off or rounded is added to δ. So the answer is a bound.
 */
(function () {
"use strict";

const { exp, expm1, log1p, max, min, abs, sqrt, ceil, floor } = Math;
const ROOT2 = Math.SQRT2, ROOT_2PI = sqrt(2 * Math.PI);

/* --- Gaussian tails --- */

/** e^{x²}·erfc(x), to about fourteen digits. */
function erfcx(x) {
	if (x < 0) return 2 * exp(x * x) - erfcx(-x);
	if (x < 2) {  // erf is a series of positive terms
		let term = x, sum = x;
		for (let n = 1; term > 1e-18 * sum; n += 1) sum += term *= 2 * x * x / (2 * n + 1);
		return exp(x * x) - 2 / sqrt(Math.PI) * sum;
	}
	let fraction = x;  // a continued fraction, from its end
	for (let n = ceil(20 + 240 / (x * x)); n > 0; n -= 1) fraction = x + n / 2 / fraction;
	return 1 / (sqrt(Math.PI) * fraction);
}

const clamp = (x, low, high) => min(max(x, low), high);

/** Φ(−z), accurate in the tail. */
const upperTail = (z) => z < -6 ? 1 : 0.5 * exp(-z * z / 2) * erfcx(z / ROOT2);

/** δ(ε) of N(μ, 1) against N(0, 1): Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ). */
function gaussianDelta(epsilon, mu) {
	if (mu === 0) return 0;
	const near = epsilon / mu - mu / 2, far = epsilon / mu + mu / 2, scale = 0.5 * exp(-near * near / 2);
	if (near < -5) return 1 - scale * (erfcx(-near / ROOT2) + erfcx(far / ROOT2));
	return scale * (erfcx(near / ROOT2) - erfcx(far / ROOT2));
}

/** Where a falling function has fallen to zero, from the right: never too small. `high` has to be on the right. */
function fallen(f, low, high, near) {
	let left = f(low), right = f(high), side = 0;
	if (left <= 0) return low;
	for (let i = 0; i < 200 && high - low > near * abs(high); i += 1) {
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
		high = min(2 * high, most);
	}
	return high;
}

/** The ε at which a falling curve δ(ε) is at most `delta`. */
function epsilonOf(curve, delta) {
	const excess = (epsilon) => Math.log(max(curve(epsilon), 1e-300) / delta);
	return excess(0) <= 0 ? 0 : fallen(excess, 0, rising(excess, 1, 1e9), 1e-10) * (1 + 1e-8);
}

/** The largest μ = sensitivity/noise whose Gaussian mechanism is (ε, δ)-private. */
function gaussianMu(epsilon, delta) {
	const excess = (sigma) => Math.log(max(gaussianDelta(epsilon, 1 / sigma), 1e-300) / delta);
	let low = 1;
	while (excess(low) <= 0) low /= 2;
	return 1 / fallen(excess, low, rising(excess, 2 * low, 1e12), 1e-12);
}

/* --- Participation revealed: δ(ε) = E δ_Gauss(ε; change·√J/σ), J ~ Bin(T, q) --- */

function revealedEpsilon(delta, q, sigma, steps, change) {
	const mode = min(steps, floor((steps + 1) * q)), odds = q / (1 - q), weights = [[mode, 1]];
	let total = 1, tail = 0;  // weights are relative to that of the mode
	for (const way of [1, -1]) {
		for (let j = mode, weight = 1; ;) {
			const ratio = way > 0 ? (steps - j) / (j + 1) * odds : j / (steps - j + 1) / odds;
			const rest = ratio < 1 ? weight * ratio / (1 - ratio) : Infinity;  // a geometric series is more than what is left
			if (rest < 1e-9 * delta) {
				if (way > 0) tail = rest; else weights.push([j, rest]);  // fewer drawn steps show less
				break;
			}
			j += way; weight *= ratio; total += weight;
			weights.push([j, weight]);
		}
	}
	return epsilonOf((epsilon) => {
		let sum = tail;
		for (const [j, weight] of weights) sum += weight * gaussianDelta(epsilon, change * sqrt(j) / sigma);
		return sum / total * (1 + 1e-12 * weights.length);
	}, delta);
}

/* --- One step: the pair that dominates it (elementdp.privacy: domination) --- */

const sizeOf = (run) => run.unit === "user" ? run.elements || 1 : 1;

/** How the answer is known, and the swing and change of the worst step, in units of ρ. */
function worstCase(run) {
	const bound = run.elements;  // null: any number
	if (run.unit === "user" && bound === null) return { how: "refused" };
	const size = sizeOf(run), change = 2 * size;
	if (run.q === 1) return { how: "gaussian", change };
	if (run.sampler === "poisson-pairs") return { how: size > 1 ? "counted" : "pair", swing: size, change };
	if (bound === null) return { how: "revealed", change };
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
	const size = run.elements, none = size * log1p(-run.q), parts = [], width = max(1, floor(0.004 * size * run.q));
	let lost = 0, waiting = 0, log = none - Math.log(-expm1(none));  // of the chance of j, given that any shows
	for (let j = 1; j <= size; j += 1) {
		log += Math.log((size - j + 1) / j * run.q / (1 - run.q));
		const weight = exp(log) * (1 + 1e-12 * size);
		if (weight < least && j > size * run.q) lost += weight;
		else waiting += weight;
		if ((j % width === 0 || j === size) && waiting >= least) {
			parts.push({ ...single(-expm1(none), exp(none), j, -j), weight: waiting });
			waiting = 0;
		}
	}
	return { parts, lost: lost + waiting };
}

/** log of the density of (1−q)N(0)+qN(mean) over that of N(0). */
function logRatio(part, mean, u) {
	const power = mean * u - mean * mean / 2;
	if (!part.stay) return power;
	const excess = part.q * expm1(min(power, 600));
	if (power < 600 && excess > -0.5) return log1p(excess);
	if (power > 0) return Math.log(part.q) + power + log1p(part.stay / part.q * exp(-power));
	return Math.log(part.stay + part.q * exp(power));
}

const loss = (part, u) => logRatio(part, part.s, u) - logRatio(part, part.t, u);

/** The derivative of the log ratio: mean times the chance, given u, of not being at zero. */
function climb(part, mean, u) {
	return mean / (1 + part.stay / part.q * exp(mean * mean / 2 - mean * u));
}

/** Outcomes with a positive loss, where the first law has its mass; there the loss rises. */
function windows(part, reach) {
	const start = (part.s + part.t) / 2, far = part.s - reach, found = [];
	if (far > reach) {
		if (start < reach) found.push([start, reach]);
		found.push([max(start, far), part.s + reach]);
	} else found.push([start, part.s + reach]);
	return found;
}

/* --- The lattice: chords of the curve --- */

/* Knots are at h·k. Cells are h wide near 0 and at most a sixteenth (over `fine`) of their loss further out, where the
 * error of a chord counts less. Only positive losses are cut: the pair is symmetrised, with a mass e^{-x}·m at −x for each mass
 * m at x, and what is left is at 0. (A pair that is symmetric already stays what it is.) */
const stride = (k, fine) => k < 32 * fine ? 1 : 2 ** (floor(Math.log2(k / fine)) - 4);
const NODES = [0, 0.5384693101056831, -0.5384693101056831, 0.906179845938664, -0.906179845938664];
const WEIGHTS = [128 / 225, 0.4786286704993665, 0.4786286704993665, 0.2369268850561891, 0.2369268850561891];

function lattice(law, h, fine, reach) {
	const top = max(...law.parts.map((part) => loss(part, part.s + reach)));
	const knots = [0];
	let last = 0;
	while (last * h <= top) knots.push(last += stride(last, fine));
	knots.push(last + stride(last, fine));
	const mass = new Float64Array(knots.length);
	for (const part of law.parts) {
		for (const [low, high] of windows(part, reach)) cut(part, low, high, h, knots, mass);
	}
	return { h, knots, mass };
}

function cut(part, low, high, h, knots, mass) {
	let place = 0, u = low;
	const start = max(0, loss(part, low)), end = loss(part, high);
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
		if (abs(value) <= 1e-11 * h + 1e-15 * target) break;
		if (value < 0) low = u; else high = u;
		const newton = u - value / (climb(part, part.s, u) - climb(part, part.t, u));
		u = newton > low && newton < high ? newton : (low + high) / 2;
	}
	return u;
}

/** Send the mass between two outcomes to the knots of its cell, so that the second law's mass is kept as well. */
function split(part, low, high, place, h, knots, mass) {
	const x = knots[place] * h, width = knots[place + 1] * h - x;
	const pieces = max(1, ceil((high - low) * max(10, min(part.s, 60))));
	const half = (high - low) / pieces / 2, whole = -expm1(-width);
	for (let i = 0; i < pieces; i += 1) {
		for (let n = 0; n < 5; n += 1) {  // Gauss and Legendre's rule; its error is below 1e-12 here
			const u = low + half * (2 * i + 1 + NODES[n]), first = logRatio(part, part.s, u);
			const all = part.weight * half * WEIGHTS[n] / ROOT_2PI * exp(first - u * u / 2);
			const offset = clamp(first - logRatio(part, part.t, u) - x, 0, width);
			const up = all * -expm1(-offset) / whole;
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
		if (mass[k] > 0) top = max(top, tilt * knots[k] * h + Math.log(mass[k]));
		zero -= mass[k] * (1 + exp(-knots[k] * h));
	}
	let total = 0;
	for (let k = 0; k < size; k += 1) {
		const x = knots[k] * h;
		index[size - 1 + k] = knots[k]; index[size - 1 - k] = -knots[k];
		if (k === 0) p[size - 1] = max(0, zero) * exp(-top);
		else if (mass[k] > 0) {
			p[size - 1 + k] = exp(Math.log(mass[k]) + tilt * x - top);
			p[size - 1 - k] = exp(Math.log(mass[k]) - (1 + tilt) * x - top);
		}
	}
	for (const value of p) total += value;
	for (let i = 0; i < p.length; i += 1) p[i] /= total;
	return { index, p, h, tilt, logScale: top + Math.log(total) };
}

/* --- Composition --- */

const LONGEST = 17;  // log2 of the longest transform that is still refined

/** An interval of the index that holds all but `folded` of the T-fold tilted law, by Chernoff's inequality. */
function holding(law, steps, folded) {
	let mean = 0, square = 0, least = 0, most = 0;
	law.index.forEach((k, i) => { mean += law.p[i] * k; });
	law.index.forEach((k, i) => {
		square += law.p[i] * (k - mean) ** 2;
		if (law.p[i] > 0) { least = min(least, k - mean); most = max(most, k - mean); }
	});
	const deviation = max(sqrt(steps * square), 1), budget = -Math.log(folded / 2);
	const far = (sign) => {
		let best = steps * (sign > 0 ? most : -least);
		for (const angle of [0.05, 0.15, 0.5, 1, 2, 4, 7]) {
			const turn = sign * angle / deviation;
			let sum = 0;
			law.index.forEach((k, i) => { if (law.p[i] > 0) sum += law.p[i] * exp(turn * (k - mean)); });
			best = min(best, (steps * Math.log(sum) + budget) * deviation / angle);
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
	const size = 2 ** max(6, ceil(Math.log2(high - low + 4)));
	const centre = Math.round(mean), first = floor(low) - steps * centre;
	const shift = ((first % size) + size) % size;
	const re = new Float64Array(size), im = new Float64Array(size);
	law.index.forEach((k, i) => { re[(k - centre) & (size - 1)] += law.p[i]; });
	transform(re, im);
	let strength = 0;
	const quiet = exp(-100 / steps);  // below, the T-th power is less than e^{-50}
	for (let k = 0; k < size; k += 1) {
		const square = re[k] * re[k] + im[k] * im[k];
		if (square > quiet) {
			const power = exp(steps * 0.5 * Math.log(square)), turn = steps * Math.atan2(im[k], re[k]);
			strength += power;
			// Exchanging the parts turns the transform into its inverse.
			re[k] = power * Math.sin(turn); im[k] = power * Math.cos(turn);
		} else re[k] = im[k] = 0;
	}
	transform(re, im);
	// Each of log2(size) layers adds at most a few roundings, T times over; see elementdp.privacy: transform.
	const rounding = Number.EPSILON * (1 + steps) * 16 * Math.log2(size) * strength / size + exp(-50);
	const error = rounding / (h * tilt * (1 + tilt)) * (1 + h * (1 + tilt)) + folded;
	const decay = exp(-tilt * h), drop = exp(-h), bounds = new Float64Array(size);
	let sum = 0, weighted = 0;
	for (let k = size - 1; k >= 0; k -= 1) {  // Σ_{j>k} w_j e^{−τu}(1−e^{−u}), u = (j−k)h
		const density = k + 1 < size ? im[(shift + k + 1) & (size - 1)] / size : 0;
		sum = decay * sum + decay * -expm1(-h) * (density + weighted);
		weighted = decay * drop * (density + weighted);
		bounds[k] = max(sum, 0) + error;
	}
	const start = h * (steps * centre + first), scale = steps * law.logScale + steps * 2e-12;
	const logDelta = (k) => Math.log(exp(scale - tilt * (start + h * k) + Math.log(bounds[k])) + lost);
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
	const share = expm1(target - left) / expm1(right - left);
	return curve.start + curve.h * low + log1p(share * expm1(curve.h));
}

/* --- Planning: the tilt and the lattice, from a rough sample of the loss --- */

const TOLERANCE = 2e-3;  // aimed-at relative error of ε

function sample(law, reach) {
	const losses = [], masses = [], step = law.parts.length > 4 ? 0.25 : 0.05;
	for (const part of law.parts) {
		for (const [low, high] of windows(part, reach)) {
			const count = ceil((high - low) / step), wide = (high - low) / count;
			for (let i = 0; i < count; i += 1) {
				const u = low + (i + 0.5) * wide;
				losses.push(loss(part, u));
				masses.push(part.weight * wide / ROOT_2PI * exp(logRatio(part, part.s, u) - u * u / 2));
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
			sum += masses[i] * (expm1(t * losses[i]) + exp(-losses[i]) * expm1(-t * losses[i]));
		}
	}
	return log1p(sum);
}

const chernoff = (points, steps, t) => steps * cumulant(points, t) + t * Math.log(t) - (1 + t) * log1p(t);

/** A smaller tilt at which Chernoff's bound on δ(ε) is hardly worse: rare large losses then stay rare. */
function gentler(points, steps, tilt, epsilon, target) {
	const bound = (t) => chernoff(points, steps, t) - t * epsilon, most = max(bound(tilt), target) + 7;
	let t = tilt;
	while (t > tilt / 16 && bound(t / 1.4) < most) t /= 1.4;
	return t;
}

/** The tilt that minimises `objective(tilt, log of Chernoff's bound on δ(0))`. */
function saddle(points, steps, objective) {
	const value = (log) => {
		const found = objective(exp(log), chernoff(points, steps, exp(log)));
		return Number.isFinite(found) ? found : Infinity;
	};
	let best = 0, least = Infinity;
	for (let log = -5; log <= 16; log += 0.25) {
		const found = value(log);
		if (found < least) { least = found; best = log; }
	}
	return { tilt: exp(best), value: least };
}

/** The distance of the knots: as wide as a relative error of about TOLERANCE in ε allows. */
function spacing({ losses, masses }, steps, tilt, epsilon) {
	let total = 0, square = 0;
	const p = losses.map((x, i) => {
		const up = masses[i] * exp(tilt * x), down = masses[i] * exp(-(1 + tilt) * x);
		total += up + down - masses[i] * (1 + exp(-x));
		square += (up + down) * x * x;
		return up + down;
	});
	total += 1;
	const spread = sqrt(steps * square / total);
	const allowed = TOLERANCE * max(epsilon, min(0.05 * spread, 0.05 / tilt)) * 2 / (steps * (1 + tilt));
	const error = (h) => {
		let sum = 0;
		losses.forEach((x, i) => {
			const wide = h * stride(floor(x / h), 1), offset = x % wide;
			sum += p[i] * offset * (wide - offset);
		});
		return sum / total;
	};
	let h = sqrt(6 * allowed);
	for (let i = 0; i < 12 && error(2 * h) < allowed; i += 1) h *= 2;
	return h;
}

/** The ε of T steps of a law at δ: an upper bound. */
function composedEpsilon(run, worst, delta) {
	const steps = run.steps, target = Math.log(delta);
	const law = pairs(run, worst, 1e-7 * delta / steps);
	const apart = worst.how === "counted" ? law.parts[0].q : run.q;
	if (-expm1(steps * log1p(-apart)) <= delta * (1 - 1e-9)) return 0;  // the laws differ that rarely
	const reach = sqrt(2 * (Math.log(steps) - target + Math.log(1e6)));
	const lost = steps * (2 * upperTail(reach) + law.lost), points = sample(law, reach);
	let { tilt, value: epsilon } = saddle(points, steps, (t, bound) => (bound - target) / t);
	epsilon = max(epsilon, 1e-9);
	let best = Infinity, fine = 0.5, before = Infinity;
	for (let attempt = 0; attempt < 10; attempt += 1) {
		const gentle = gentler(points, steps, tilt, epsilon, target);
		let h = spacing(points, steps, tilt, max(epsilon, SMALLEST)) / fine, cells, lossLaw, room;
		for (;; h *= 2) {
			cells = lattice(law, h, 2 * fine, reach);
			lossLaw = tilted(cells, gentle);
			// What falls outside the window is added to δ: a ten-thousandth of it may.
			const share = target + gentle * epsilon - steps * lossLaw.logScale;
			room = holding(lossLaw, steps, 1e-4 * exp(clamp(share, -23, 0)));
			if (room.high - room.low < 2 ** (LONGEST + 1) - 4) break;
		}
		let differ = lost;  // T steps tell the two apart at most T times as well as one
		cells.mass.forEach((mass, k) => { differ += steps * mass * -expm1(-cells.knots[k] * h); });
		if (differ <= delta) return 0;
		const curve = compose(lossLaw, steps, lost, room), found = crossing(curve, target);
		if (found === -Infinity && curve.start <= 0) return 0;
		const bound = found === -Infinity ? curve.start : found, top = cells.knots[cells.knots.length - 1] * h;
		best = min(best, bound + steps * (2e-15 * top + 1e-11 * h));
		if (fine < 1 && (found < 0.6 * epsilon || found > 1.7 * epsilon) && attempt < 6) {  // a pilot that missed
			epsilon = found < epsilon ? max(found, epsilon / 4) : min(found, epsilon * 4);
			tilt = saddle(points, steps, (t, bound) => bound - t * epsilon).tilt;
			if (epsilon > SMALLEST / 4) continue;
		}
		// Every lattice gives a bound. A finer one is tried until that hardly helps.
		if (before - best < 6e-3 * best || best < SMALLEST || curve.size >= 2 ** LONGEST || fine > 8) break;
		before = epsilon = best; fine *= 2;
	}
	return max(0, best);
}

const SMALLEST = 1e-3;

/** The ε to promise at δ: an upper bound of the true one. NaN where nothing is proved. */
function account(run, delta) {
	const worst = worstCase(run);
	if (worst.how === "refused") return NaN;
	const mu = worst.change * sqrt(run.steps) / run.sigma;
	if (worst.how === "gaussian") return epsilonOf((epsilon) => gaussianDelta(epsilon, mu), delta);
	const revealed = () => revealedEpsilon(delta, run.q, run.sigma, run.steps, worst.change);
	if (worst.how === "revealed") return revealed();
	// What holds of users with any number of elements holds of those with few.
	if (worst.how === "symmetrised") {
		return worst.swing / run.sigma > 60 ? revealed() : min(composedEpsilon(run, worst, delta), revealed());
	}
	return composedEpsilon(run, worst, delta);
}

/* --- What the paper would print: Rényi orders and Mironov's rule --- */

/** D_α of (1−q)N(0)+qN(a) against (1−q)N(0)+qN(b), noise σ: a trapezoidal sum over where the integrand can peak. */
function renyi(order, q, sigma, a, b) {
	const reach = 11 * sigma, step = min(sigma / 4, sigma * sigma / (3 * max(1, abs(a), abs(b))));
	const modes = [min(a, b, 0), 0, max(a, b, 0), order * a, (1 - order) * b, order * a + (1 - order) * b];
	modes.sort((x, y) => x - y);
	const whole = (modes[5] - modes[0]) / step < 1e4, points = [], part = { q, stay: 1 - q };
	let top = 0, k = -Infinity;
	modes.forEach((mode, i) => {
		const until = whole && i < 5 ? max(mode, modes[i + 1]) : mode + reach;
		for (k = max(k, ceil((mode - reach) / step)); k * step <= until; k += 1) {
			const u = k * step / sigma, base = -u * u / 2;
			const first = logRatio(part, a / sigma, u), second = logRatio(part, b / sigma, u);
			top = max(top, base + order * first + (1 - order) * second);
			points.push([base, first, second]);
		}
	});
	// E_B (A/B)^α − 1, less the density αA + (1−α)B, which integrates to 1: small levels keep their digits.
	let sum = 0;
	for (const [base, first, second] of points) {
		const ratio = first - second, power = base + order * first + (1 - order) * second;
		if (top > 300) sum += exp(power - top);
		else if (order * abs(ratio) < 1) {
			sum += exp(base + second) * (expm1(order * ratio) - order * expm1(ratio));
		} else sum += exp(power) - order * exp(base + first) - (1 - order) * exp(base + second);
	}
	sum *= step / (sigma * ROOT_2PI);
	return max(0, (top > 300 ? top + Math.log(sum) : log1p(sum)) / (order - 1));
}

/** The ε the paper would print: inf over α of T·ε_α(q, σ) + log(1/δ)/(α−1). Not a guarantee. */
function claimed(run, delta) {
	if (run.unit === "user" && run.elements === null) return Infinity;
	const sigma = run.sigma / sizeOf(run);
	const at = (log) => {
		const order = 1 + exp(log);
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
		least = min(least, x, y);
		if (x < y) { high = b; b = a; y = x; a = low + 0.382 * (high - low); x = at(a); }
		else { low = a; a = b; x = y; b = low + 0.618 * (high - low); y = at(b); }
	}
	return least;
}

/* --- The noise for a target, and the box in which all this is tested --- */

/** The least σ for which `count(run, delta)` is at most `epsilon`, or the least of the box; Infinity beyond the box. */
function noise(count, run, epsilon, delta) {
	// The logarithms are shifted, so that the relative accuracy asked for is one of σ.
	const excess = (log) => Math.log(max(count({ ...run, sigma: exp(log - 100) }, delta), 1e-9) / epsilon);
	const [least, most] = BOX.sigma.map((s) => 100 + Math.log(sizeOf(run) * s));
	return excess(most) > 0 ? Infinity : exp(fallen(excess, least, most, 2e-6) - 100);
}

/** Where the bound has been compared with the package; outside, the page shows the command instead. For whole users σ
 * is per element. */
const BOX = {
	q: [1e-4, 1], steps: [1, 1e5], sigma: [0.3, 1000], delta: [1e-10, 1e-2], elements: [1, 1000],
};

window.elementdp = {
	account, claimed, noise, renyi, gaussianDelta, gaussianMu, clamp, sizeOf, BOX, SMALLEST,
};
})();
