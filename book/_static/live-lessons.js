/* Four figures of the chapters and an audit to play; the tools are those of live-figures.js. */
(function () {
"use strict";

const dp = window.elementdp, { make, range, spread, digits, controls, plot, button, LOOKS } = dp.tools, { clamp } = dp;
const { exp, max, min, abs, sqrt } = Math;

/** A box with controls, an answer that is read aloud, and places for plots; `draw(values, parts)` fills them. */
function figure(box, start, specs, draw, plots = 1) {
	const answer = make("div", { class: "edp-answer", role: "status", "aria-live": "polite" });
	const graphs = range(plots).map(() => make("div", { class: "edp-plot" }));
	const update = () => draw(panel.values(), { answer, graphs, panel });
	const panel = controls(specs, start, update);
	box.append(panel.node, answer, make("div", { class: "edp-plots" }, ...graphs));
	update();
	return update;
}

const say = (answer, ...lines) => answer.replaceChildren(...lines.map((line) => make("p", {}, line)));
const flat = (height, low, high, look) => ({ points: [[low, height], [high, height]], ...look });

/** Random numbers (mulberry32), the same ones for the same seed. */
function generator(seed = Math.random() * 2 ** 32) {
	let state = seed >>> 0;
	return () => {
		state = (state + 0x6d2b79f5) >>> 0;
		let t = Math.imul(state ^ (state >>> 15), state | 1);
		t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
		return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
	};
}

const normal = (random) => sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

/* --- One coin, K bits --- */

/** A number as typed, as a pair of whole numbers. */
function fraction(text) {
	const [top, bottom] = `${text.replaceAll(",", "")}/1`.split("/").map((part) => {
		const [whole, rest = ""] = (/e/i.test(part) ? Number(part).toFixed(9) : part).trim().split(".");
		return [BigInt(whole + rest), 10n ** BigInt(rest.length)];
	});
	return reduced(top[0] * bottom[1], top[1] * bottom[0]);
}

function reduced(a, b) {
	let [x, y] = [a, b];
	while (y) [x, y] = [y, x % y];
	return [a / x, b / x];
}

const value = ([a, b]) => Number(a * 1000000n / b) / 1e6;
const shown = ([a, b]) => (b > 1n && `${a}${b}`.length < 13 ? `${a}/${b} = ` : "") + digits(value([a, b]), 0, 4);

/** (1 − q + q·x^K)/(1 − q + q·x^(K−1)) exactly, for q = a/b and x = c/d. */
function ratio([a, b], [c, d], K) {
	const at = (power) => (b - a) * d ** BigInt(power) + a * c ** BigInt(power);
	return reduced(at(K), at(K - 1) * d);
}

dp.figures.counterexample = (box, start) => figure(box, start, {
	q: { label: "Chance q of being drawn", range: [0.01, 0.99], value: 0.5 },
	odds: { label: "Odds eᵋ of one answer", range: [1, 20], value: 3 },
	K: { label: "Elements K", range: [1, 30], whole: true, value: 2 },
}, ({ K }, { answer, graphs, panel }) => {
	const q = fraction(panel.made.q.text()), x = fraction(panel.made.odds.text());
	const printed = ratio(q, x, 1), true_ = ratio(q, x, K);
	say(answer, `The paper prints a ratio of at most ${shown(printed)}. With users sampled it is ${shown(true_)}; `
		+ `with pairs sampled ${shown(printed)}, whatever K is.`);
	const most = max(12, K), points = range(most).map((i) => [i + 1, value(ratio(q, x, i + 1))]);
	plot(graphs[0], {
		x: { low: 1, high: most, words: "elements K" },
		y: { low: 1, high: max(1.05, value(x) * 1.06), words: "largest likelihood ratio" },
		lines: [{ ...LOOKS.users, points, words: "users sampled" }, flat(value(printed), 1, most, LOOKS.printed),
			flat(value(x), 1, most, { words: "no sampling at all", colour: "grey" })],
		marks: [{ at: [K, value(true_)], colour: "orange" }],
		words: `The ratio rises from ${digits(value(printed))} at K = 1 towards ${digits(value(x))}; at K = ${K} it is ${digits(value(true_))}.`,
	});
});

/* --- What one step shows --- */

dp.figures.densities = (box, start) => figure(box, start, {
	r: { label: "Other elements add r", range: [0, 20], value: 9 },
	sigma: { label: "Noise σ", range: [0.5, 8], value: 2 },
	q: { label: "Sampling rate q", range: [0.01, 1], value: 0.3 },
	order: { label: "Rényi order α", range: [1.5, 32], value: 8 },
}, ({ r, sigma, q, order }, { answer, graphs }) => {
	const level = (others) => dp.renyi(order, q, sigma, others + 1, others - 1), printed = level(0), found = level(r);
	say(answer, `Rényi level of one step at order ${order}: printed ${digits(printed)}; with r = ${r} it is ${digits(found)}, `
		+ `${digits(found / printed)} times as much.`);
	const low = -1 - 4 * sigma, high = max(1, r + 1) + 4 * sigma, bell = (z) => exp(-z * z / 2) / (sigma * sqrt(2 * Math.PI));
	const density = (others, secret) => spread(low, high, 160)
		.map((z) => [z, (1 - q) * bell(z / sigma) + q * bell((z - others - secret) / sigma)]);
	const pairs = [0, r].map((others) => [1, -1].map((secret) => density(others, secret)));
	const top = 1.08 * max(...pairs.flat(2).map((point) => point[1]));
	[0, r].forEach((others, i) => plot(graphs[i], {
		x: { low, high, words: "output of one step" }, y: { low: 0, high: top, words: `density, others add ${others}` },
		lines: pairs[i].map((points, side) => ({
			points, words: side ? "secret = −1" : "secret = +1", colour: side ? "grey" : "ink", dash: side ? "7 4" : "",
		})),
		height: 220,
		words: `Densities for both values of the secret when the other elements add ${others}; Rényi level ${digits(level(others))}.`,
	}));
}, 2);

/* --- Two users and a partition --- */

const KEYS = { words: (word) => word, letters: (word) => [...word][0], everything: () => "everything" };

/** The elements in which two texts differ: a text is a multiset of words, cut up by `key`. */
function differing(texts, key) {
	const [one, other] = texts.map((text) => {
		const parts = {};
		for (const word of text.split(/\s+/).filter(Boolean).sort()) (parts[`=${key(word)}`] ||= []).push(word);
		return parts;
	});
	return [...new Set([...Object.keys(one), ...Object.keys(other)])]
		.filter((name) => String(one[name]) !== String(other[name])).map((name) => name.slice(1));
}

dp.figures.distances = (box, start) => figure(box, start, {
	one: { label: "One user says", lines: 3, value: "yo bro yo bro yo bro" },
	other: { label: "The other says", lines: 3, value: "yo yo bro see you at home" },
	partition: {
		label: "An element is",
		choices: { words: "each word", letters: "all words with one first letter", everything: "everything" }, value: "words",
	},
	epsilon: { label: "ε of one element", range: [0.1, 5], value: 1 },
}, ({ one, other, partition, epsilon }, { answer }) => {
	const found = differing([one, other], KEYS[partition]), D = found.length, power = D * epsilon;
	say(answer, make("b", {}, `Distance ${D}`), `The odds of one user against the other move by at most exp(${digits(power)}), a factor `
		+ `${power < 30 ? digits(exp(power), 1) : "beyond any use"}.`,
	D ? `They differ in: ${found.slice(0, 12).join(", ")}${D > 12 ? ", …" : ""}.` : "They are the same.");
}, 0);

/* --- The histogram's error --- */

const ZIPF = range(2000).map((i) => 1 / (i + 10)), ALL = ZIPF.reduce((a, b) => a + b), CAP = 50, SHARE = 0.1, DELTA = 1e-6;

/** The laws Bin(m, p_j) of the counts of all words, as far as they matter. */
const laws = (m) => ZIPF.map((weight) => {
	const p = weight / ALL, law = [(1 - p) ** m];
	for (let k = 0; k < m && (k < m * p || law[k] > 1e-14); k += 1) law.push(law[k] * (m - k) / (k + 1) * p / (1 - p));
	return { mean: m * p, law };
});

/** Sampling, bias and noise of the histogram of one-word clusters at radius ρ. */
function errors(words, rho, n, mu) {
	let sampling = 0, bias = 0;
	for (const { mean, law } of words) {
		let first = 0, second = 0;
		law.forEach((chance, k) => { const y = min(k, rho); first += chance * y; second += chance * y * y; });
		sampling += (second - first * first) / n;
		bias += (first - mean) ** 2;
	}
	return { sampling, bias, noise: words.length * (rho / (mu * n)) ** 2 };
}

const total = (parts) => parts.sampling + parts.bias + parts.noise;

dp.figures.histogram = (box, start) => {
	const random = generator(start.seed);
	let known = {};
	const again = figure(box, start, {
		rho: { label: "Radius ρ", range: [1, 100], log: true, whole: true, value: 10 },
		n: { label: "Users n", range: [10, 100000], log: true, whole: true, value: 500 },
		m: { label: "Words per user m", range: [10, 1000], log: true, whole: true, value: 300 },
		epsilon: { label: "ε", range: [0.1, 10], log: true, value: 4 },
	}, ({ rho, n, m, epsilon }, { answer, graphs }) => {
		if (known.m !== m) known = { m, words: laws(m) };
		const mu = dp.gaussianMu(epsilon, DELTA), { words } = known, at = (x) => errors(words, x, n, mu), here = at(rho);
		const radii = spread(1, 100, 41, true), all = radii.map(at);
		const best = range(101).slice(1).reduce((a, b) => total(at(b)) < total(at(a)) ? b : a), least = total(at(best));
		// The rule by norms: a noisy mean count for each word, ρ two deviations above the largest; a tenth of μ² pays.
		const largest = max(...words.map(({ law }) => law.reduce((sum, chance, k) => sum + chance * min(k, CAP), 0)
			+ normal(random) * CAP / (n * mu * sqrt(SHARE))));
		const r = clamp(largest, 0, CAP), own = min(r + 2 * sqrt(r) + 1, m);
		const paid = total(errors(words, own, n, mu * sqrt(1 - SHARE)));
		say(answer, `At ρ = ${rho}: sampling ${digits(here.sampling)}, bias ${digits(here.bias)}, noise ${digits(here.noise)}; `
			+ `together ${digits(total(here))}. The best ρ is ${best}, with ${digits(least)}.`,
		`Chosen privately, ρ = ${digits(own)} this time, with error ${digits(paid)}, its price included.`);
		const top = 4 * least, stack = (...names) => all.map((parts) => names.reduce((sum, name) => sum + parts[name], 0));
		const layer = (words_, colour, below, above) => ({ words: words_, colour, points: radii.map((x, i) => [x, above[i]]), to: below });
		const [zero, one, two, three] = [stack(), stack("sampling"), stack("sampling", "bias"), stack("sampling", "bias", "noise")];
		plot(graphs[0], {
			x: { low: 1, high: 100, log: true, words: "radius ρ" }, y: { low: 0, high: top, words: "squared error" },
			lines: [layer("sampling", "rule", zero, one), layer("bias", "grey", one, two), layer("noise", "ink", two, three)],
			marks: [{ at: [best, least], colour: "ink", words: "best ρ", open: true }, { at: [rho, total(here)], colour: "ink", words: "your ρ" },
				{ at: [own, paid], colour: "blue", words: "private ρ" }],
			words: `Squared error against ρ as sampling, bias and noise. Least at ρ = ${best}: ${digits(least)}.`,
		});
	});
	box.append(make("div", { class: "edp-tools" }, button("Choose ρ privately again", again)));
};

/* --- An audit to play --- */

/** What `right` of `guesses` prove: the odds that no mechanism of a smaller ε allows, at 95 % for all times at once.
 *
 * Under ε a guess of a fair secret is right with chance at most e^ε/(1 + e^ε) =: s, whatever was seen before. So the
 * mean over p in (s, 1) of (p/s)^right·((1−p)/(1−s))^wrong rarely grows (Ville): its chance to reach 20 ever is 1/20. */
function proven(right, guesses) {
	const wrong = guesses - right, log = (p) => right * Math.log(p) + (wrong ? wrong * Math.log(1 - p) : 0);
	const evidence = (s) => {
		const step = (1 - s) / 400;
		let sum = 0;
		for (let i = 0; i < 400; i += 1) sum += exp(log(s + (i + 0.5) * step) - log(s)) / 400;
		return sum;
	};
	if (!(evidence(0.5) >= 20)) return 0;
	let low = 0.5, high = 1 - 1e-9;
	for (let i = 0; i < 40; i += 1) {
		const middle = (low + high) / 2;
		if (evidence(middle) >= 20) low = middle; else high = middle;
	}
	return Math.log(low / (1 - low));
}

dp.figures.audit = (box, start) => {
	const random = generator(start.seed), tiles = make("p", { class: "edp-tiles" });
	let parts, values, state, run, last;

	/** Draw runs until one says much about the secret; the others are skipped. */
	function next() {
		const { sampler, q, odds, K } = values, truth = odds / (1 + odds), pairs = sampler === "pairs";
		const product = (list) => list.reduce((a, b) => a * b, 1);
		for (let found = 0; abs(found) < 0.8 * state.most; state.runs += 1) {
			const secret = random() < 0.5, drawn = random() < q;
			const answers = range(K).map((k) => random() < truth === ((pairs ? random() < q : drawn) && (k > 0 || secret)));
			// The chance of the answers if the secret is yes or no; under pair sampling the others say nothing about it.
			const chance = (yes) => answers.map((a) => a === yes ? truth : 1 - truth), [no, all] = [chance(false), chance(true)];
			const absent = pairs ? no[0] : product(no), others = pairs ? 1 : product(all.slice(1));
			found = Math.log(((1 - q) * absent + q * all[0] * others) / ((1 - q) * absent + q * no[0] * others));
			run = { secret, answers, best: found > 0 };
		}
	}

	function guess(yes) {
		const right = yes === run.secret;
		last = `The secret was ${run.secret ? "yes" : "no"}: ${right ? "right" : "wrong"}.`;
		state.right += right;
		state.guesses += 1;
		state.best = max(state.best, proven(state.right, state.guesses));
		state.path.push([state.guesses, state.best]);
		next();
	}

	function show() {
		const { right, guesses, runs, best, path, claim, most } = state, wide = max(30, guesses);
		tiles.replaceChildren("Answers of this run: ", ...run.answers.map((yes, k) =>
			make("span", { class: k ? "" : "edp-secret" }, `${k ? "" : "secret: "}${yes ? "yes" : "no"}`)));
		say(parts.answer, `${last} ${right} of ${guesses} guesses were right, after ${runs} runs. They prove ε ≥ ${digits(best, -1)}; the paper `
			+ `prints ${digits(claim)}${best > claim ? ", which is thereby refuted" : ""}. (95 % sure, at all times at once.)`);
		plot(parts.graphs[0], {
			x: { low: 0, high: wide, words: "guesses" }, y: { low: 0, high: max(most, best, 0.5) * 1.1, words: "ε" },
			lines: [{ points: path, words: "proved so far", colour: "ink" }, flat(claim, 0, wide, LOOKS.printed),
				flat(most, 0, wide, { ...LOOKS[values.sampler], words: "true" })],
			words: `After ${guesses} guesses ε is proved to be at least ${digits(best, -1)}; the paper prints ${digits(claim)}.`,
		});
	}

	figure(box, start, {
		sampler: { label: "Sampled are", choices: { users: "users", pairs: "(user, element) pairs" }, value: "users" },
		q: { label: "Chance q of being drawn", range: [0.02, 0.5], value: 0.1 },
		odds: { label: "Odds eᵋ of one answer", range: [2, 30], value: 9 },
		K: { label: "Elements K", range: [1, 12], whole: true, value: 8 },
	}, (now, holders) => {
		const { sampler, q, odds, K } = values = now, exponent = sampler === "pairs" ? 1 : K;
		parts = holders;
		last = "Guess the secret.";
		state = { right: 0, guesses: 0, runs: 0, best: 0, path: [[0, 0]], claim: Math.log1p(q * (odds - 1)),
			most: Math.log((1 - q + q * odds ** exponent) / (1 - q + q * odds ** (exponent - 1))) };
		next();
		show();
	});
	const play = (words, count, choose) => button(words, () => { for (let i = 0; i < count; i += 1) guess(choose()); show(); });
	box.insertBefore(make("div", {}, tiles, make("div", { class: "edp-tools" }, play("The secret is yes", 1, () => true),
		play("The secret is no", 1, () => false), play("Let the best rule guess 50 times", 50, () => run.best))), parts.answer);
};
})();
