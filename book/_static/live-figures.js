/* Controls, plots and the calculator. A live figure fills a <div class="edp-live" data-live="NAME" data-start="key=value&…">,
 * whose static figure is what readers without JavaScript see. Numbers are computed by live-accountant.js, in the page. */
(function () {
"use strict";

const dp = window.elementdp, { clamp, sizeOf, BOX, SMALLEST } = dp;

/* --- Small tools --- */

function make(tag, attributes, ...children) {
	const drawn = ["svg", "path", "line", "text", "circle"].includes(tag);
	const node = drawn ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
	for (const [name, value] of Object.entries(attributes || {})) {
		if (typeof value === "function") node.addEventListener(name, value);
		else node.setAttribute(name, value);
	}
	node.append(...children);
	return node;
}

const range = (count) => Array.from({ length: count }, (_, i) => i);
const spread = (low, high, count, log) => range(count).map((i) => log
	? low * (high / low) ** (i / (count - 1)) : low + (high - low) * i / (count - 1));

/** A number with few digits, rounded up (an upper bound must stay one), down, or to the nearest. */
function digits(x, way = 0, count = 3) {
	if (!Number.isFinite(x)) return x > 0 ? "∞" : "–";
	if (x === 0) return "0";
	let shown = Number(x.toPrecision(count));
	const unit = 10 ** (Math.floor(Math.log10(Math.abs(x))) - count + 1);
	if (way > 0 && shown < x) shown = Number((shown + unit).toPrecision(count));
	if (way < 0 && shown > x) shown = Number((shown - unit).toPrecision(count));
	return Math.abs(shown) >= 1e-3 ? shown.toLocaleString("en", { maximumSignificantDigits: count }) : String(shown);
}

/** A number as one would type it. */
const written = (x) => x > 0 && x < 1e-3 ? x.toExponential() : String(x);

/** A number as typed: decimals, 1e-5, 1/2, thousands with commas. */
function number(text) {
	const parts = text.replaceAll(",", "").split("/");
	return parts.length > 2 || !parts.every((part) => part.trim()) ? NaN : Number(parts[0]) / Number(parts[1] ?? 1);
}

/** How the paper's promise and the true ones are drawn: the looks of the book's other figures. */
const LOOKS = {
	printed: { words: "the paper prints", colour: "vermillion", dash: "7 4" },
	users: { colour: "orange", dash: "2 3" }, pairs: { colour: "blue", dash: "" },
};

/* --- Controls --- */

let fields = 0;

/** A labelled control. Numbers have a text box and a slider; `choices` make a list; `lines` a box for text. */
function control(spec, start, changed, free) {
	const id = `edp-live-${fields += 1}`;
	const field = (...parts) => make("div", { class: "edp-field" }, make("label", { for: id }, spec.label), ...parts);
	if (!spec.range) {
		const box = spec.lines ? make("textarea", { id, rows: spec.lines, spellcheck: "false", input: changed })
			: make("select", { id, change: changed },
				...Object.entries(spec.choices).map(([key, words]) => make("option", { value: key }, words)));
		box.value = start ?? spec.value;
		if (!box.value) box.value = spec.value;
		return { node: field(box), get: () => box.value };
	}
	// The slider runs over 0 … 200, evenly in the value or in its logarithm; one stop more stands for "any".
	const [low, high] = spec.range, last = spec.any ? 201 : 200;
	const place = (x) => x === null ? last
		: Math.round(200 * (spec.log ? Math.log(x / low) / Math.log(high / low) : (x - low) / (high - low)));
	const at = (p) => {
		if (p > 200) return null;
		const x = spec.log ? low * (high / low) ** (p / 200) : low + (high - low) * p / 200;
		return spec.whole ? Math.round(x) : Number(x.toPrecision(spec.log ? 2 : 3));
	};
	const show = (x) => x === null ? "any" : written(x);
	const parse = (text) => {
		if (spec.any && text.trim().toLowerCase() === "any") return null;
		const x = number(text);
		return spec.whole && x !== Math.round(x) ? NaN : x;
	};
	const wrong = (x) => x !== null && !(free ? x > 0 : x >= low && x <= high);
	let value = start === undefined ? spec.value : parse(start);
	if (wrong(value)) value = spec.value;
	let raw = show(value);
	const box = make("input", {
		id, type: "text", inputmode: "decimal", autocomplete: "off", "aria-describedby": `${id}-range`,
		input: () => {
			const x = parse(box.value);
			box.setAttribute("aria-invalid", wrong(x));
			if (wrong(x)) return;
			raw = box.value;
			slide(x);
			changed();
		},
	});
	const slider = make("input", {
		type: "range", min: 0, max: last, step: 1, "aria-label": `${spec.label}, slider`,
		input: () => {
			slide(at(Number(slider.value)));
			raw = box.value = show(value);
			box.setAttribute("aria-invalid", false);
			changed();
		},
	});
	const slide = (x) => {
		value = x;
		slider.value = clamp(place(x), 0, last);
		slider.setAttribute("aria-valuetext", show(x));
	};
	box.value = raw;
	slide(value);
	const hint = make("span", { id: `${id}-range`, class: "edp-hint" }, `${show(low)} to ${show(high)}${spec.any ? " or any" : ""}`);
	return { node: field(box, slider, hint), get: () => value, text: () => raw };
}

/** The controls of a figure by key; numbers outside their range are refused unless they are `free`. */
function controls(specs, start, changed, free) {
	const made = {}, values = () => Object.fromEntries(Object.entries(made).map(([key, one]) => [key, one.get()]));
	for (const [key, spec] of Object.entries(specs)) made[key] = control(spec, start[key], changed, free);
	const node = make("div", { class: "edp-fields" }, ...Object.values(made).map((one) => one.node));
	return { node, values, made };
}

const button = (words, click) => make("button", { type: "button", class: "edp-button", click }, words);

function copier(words, text) {
	const made = button(words, async () => {
		try {
			await navigator.clipboard.writeText(text());
			made.textContent = "Copied";
		} catch {
			made.textContent = "Select it and copy by hand";
		}
		setTimeout(() => { made.textContent = words; }, 1500);
	});
	return made;
}

/* --- Plots --- */

function ticks(low, high, log, count) {
	if (log) {
		const found = [];
		for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
			for (const base of high / low < 50 ? [1, 2, 5] : [1]) found.push(Number(`${base}e${power}`));
		}
		const inside = found.filter((x) => x >= low * 0.999 && x <= high * 1.001);
		const skip = Math.ceil(inside.length / count);
		return inside.filter((_, i) => i % skip === 0);
	}
	const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
	const step = [1, 2, 5, 10].map((base) => base * power).find((x) => x >= rough);
	return range(count + 2).map((i) => (Math.ceil(low / step - 1e-9) + i) * step).filter((x) => x <= high * (1 + 1e-9));
}

/** Draw curves. `lines` are {points: [[x, y], …], colour, dash, words, to}: `to` fills down to other heights. */
function plot(holder, { x, y, lines, marks = [], words, height = 250 }) {
	const width = Math.max(260, holder.clientWidth || 600), left = 52, bottom = 42, top = 10, right = 12;
	const scale = (axis, from, to) => (value) => from + (to - from) * (axis.log
		? Math.log(value / axis.low) / Math.log(axis.high / axis.low) : (value - axis.low) / (axis.high - axis.low));
	const across = scale(x, left, width - right), up = scale(y, height - bottom, top);
	const inside = (value) => clamp(up(y.log ? Math.max(value, y.low / 10) : value), top - 4, height - bottom + 4);
	const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": words });
	for (const value of ticks(x.low, x.high, x.log, Math.floor(width / 75))) {
		svg.append(make("line", { class: "rule", x1: across(value), x2: across(value), y1: top, y2: height - bottom }));
		svg.append(make("text", { x: across(value), y: height - bottom + 16, "text-anchor": "middle" }, digits(value)));
	}
	for (const value of ticks(y.low, y.high, y.log, 5)) {
		svg.append(make("line", { class: "rule", x1: left, x2: width - right, y1: up(value), y2: up(value) }));
		svg.append(make("text", { x: left - 6, y: up(value) + 4, "text-anchor": "end" }, digits(value)));
	}
	svg.append(make("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, x.words));
	const path = (points) => points.map(([a, b], i) => `${i ? "L" : "M"}${across(a).toFixed(1)},${inside(b).toFixed(1)}`)
		.join("");
	for (const line of lines) {
		const points = line.points.filter(([, b]) => Number.isFinite(b)), stroke = `var(--edp-${line.colour})`;
		if (!points.length) continue;
		if (line.to) {
			const back = points.map(([a], i) => [a, line.to[i]]).reverse();
			svg.append(make("path", { d: `${path(points)}${path(back).replace("M", "L")}Z`, fill: stroke, opacity: 0.55 }));
		} else {
			svg.append(make("path", {
				d: path(points), fill: "none", stroke, "stroke-width": 2, "stroke-dasharray": line.dash || "none",
			}));
		}
	}
	for (const { at, colour, open } of marks) {
		svg.append(make("circle", {
			cx: across(clamp(at[0], x.low, x.high)), cy: inside(at[1]), r: 5, "stroke-width": 2,
			stroke: `var(--edp-${colour})`, fill: open ? "none" : `var(--edp-${colour})`,
		}));
	}
	const key = make("ul", { class: "edp-key" }, ...[...lines, ...marks].filter((one) => one.words).map((one) => make("li", {},
		make("span", { class: one.open ? "edp-ring" : one.at ? "edp-dot" : one.to ? "edp-block" : "edp-dash", style: `color: var(--edp-${one.colour});`
			+ `border-top-style: ${{ "7 4": "dashed", "2 3": "dotted" }[one.dash] || "solid"}` }), one.words)));
	holder.replaceChildren(make("div", { class: "edp-y" }, y.words), svg, key);
}

/* --- The calculator --- */

const SAMPLERS = {
	"poisson-users": "users, each by a coin", "fixed-users": "users, a fixed number",
	"poisson-pairs": "(user, element) pairs, each by a coin",
}, PAIRS = "poisson-pairs";
const AXES = { q: "sampling rate q", steps: "steps T", sigma: "noise σ", delta: "δ", elements: "elements per user" };
const MOST = 1000;  // an ε above this promises nothing
const INSTEAD = "run the command below instead.";

function outside(run, delta) {
	const found = [];
	const check = (words, value, [low, high]) => {
		if (!(value >= low && value <= high)) found.push(`${words} from ${low} to ${high.toLocaleString("en")}`);
	};
	check("q", run.q, BOX.q);
	check("T", run.steps, BOX.steps);
	check(run.unit === "user" ? "σ per element of a user" : "σ", run.sigma / sizeOf(run), BOX.sigma);
	check("δ", delta, BOX.delta);
	if (run.elements !== null) check("elements per user", run.elements, BOX.elements);
	return found;
}

/** The command and the Python lines that answer the same question. */
function lines(values) {
	const { sampler, elements, unit } = values, target = values.given === "epsilon";
	const [q, steps, delta, sigma, epsilon] = ["q", "steps", "delta", "sigma", "epsilon"].map((key) => written(values[key]));
	const options = `--sampler ${sampler} -q ${q} --steps ${steps} --delta ${delta}`
		+ (elements === null ? "" : ` --elements-per-user ${elements}`) + (unit === "user" ? " --unit user" : "");
	const shell = target ? `elementdp noise --epsilon ${epsilon} ${options}`
		: `elementdp epsilon --sigma ${sigma} ${options}`;
	const run = `SubsampledGaussian("${sampler}", sigma=${target ? 1 : sigma}, q=${q}, steps=${steps}`
		+ (unit === "user" ? ', unit="user"' : "") + (elements === null ? ")" : `, elements_per_user=${elements})`);
	const python = target
		? `from elementdp.privacy import SubsampledGaussian, calibrate\ncalibrate(${run}, ${epsilon}, ${delta}).sigma`
		: `from elementdp.privacy import SubsampledGaussian, account\naccount(${run}, ${delta}).up`;
	return { shell, python };
}

const bounded = (epsilon) => epsilon > MOST ? `over ${MOST}` : epsilon <= SMALLEST ? `≤ ${SMALLEST}`
	: digits(epsilon, 1);

function calculator(box, start) {
	const link = new URLSearchParams(location.hash.slice(1));
	if (link.has("q")) {
		Object.assign(start, Object.fromEntries(link));
		box.scrollIntoView();
	}
	const panel = controls({
		sampler: { label: "Sampled are", choices: SAMPLERS, value: "poisson-users" },
		unit: { label: "Protected is", choices: { element: "one element of one user", user: "one user" }, value: "element" },
		q: { label: "Sampling rate q", range: BOX.q, log: true, value: 0.01 },
		steps: { label: "Steps T", range: BOX.steps, log: true, whole: true, value: 1000 },
		delta: { label: "δ", range: BOX.delta, log: true, value: 1e-5 },
		elements: { label: "Elements per user", range: BOX.elements, log: true, whole: true, any: true, value: null },
		given: { label: "Given is", choices: { sigma: "the noise σ", epsilon: "the ε to be printed" }, value: "sigma" },
		sigma: { label: "Noise σ", range: BOX.sigma, log: true, value: 4 },
		epsilon: { label: "Target ε", range: [0.01, 100], log: true, value: 3 },
		against: { label: "Plot ε against", choices: AXES, value: "q" },
	}, start, () => { moved = true; update(); }, true);
	const answer = make("div", { class: "edp-answer", role: "status", "aria-live": "polite" });
	const graph = make("div", { class: "edp-plot" });
	const shell = make("code"), python = make("code");
	const tools = make("div", { class: "edp-tools" }, copier("Copy the command", () => shell.textContent),
		copier("Copy the Python lines", () => python.textContent),
		copier("Copy a link with these inputs", () => `${location.href.split("#")[0]}#${hash()}`));
	const code = make("div", { class: "edp-code" }, make("pre", {}, shell), make("pre", {}, python), tools);
	box.append(panel.node, answer, graph, code);
	let moved = false, turn = 0;

	const hash = () => new URLSearchParams(Object.entries(panel.values())
		.map(([key, value]) => [key, value === null ? "any" : typeof value === "number" ? written(value) : value])).toString();

	function update() {
		const values = panel.values(), now = turn += 1;
		box.dataset.turn = now;
		panel.made.sigma.node.hidden = values.given !== "sigma";
		panel.made.epsilon.node.hidden = values.given === "sigma";
		const text = lines(values);
		shell.textContent = text.shell;
		python.textContent = text.python;
		if (moved) history.replaceState(null, "", `#${hash()}`);
		const known = values.given === "sigma", wrong = outside(known ? values : { ...values, sigma: sizeOf(values) }, values.delta);
		if (values.unit === "user" && values.elements === null) {
			return tell("Nothing is proved for whole users with any number of elements: give a number.");
		}
		if (wrong.length) return tell(`Outside what this page is tested for (${wrong.join("; ")}): ${INSTEAD}`);
		queue(work(values, now), () => now === turn);
	}

	/** One number after the other, so that the page never waits for long. */
	function* work(run, now) {
		const { delta } = run;
		let { sigma, epsilon } = run;
		if (run.given === "sigma") epsilon = dp.claimed(run, delta);
		else sigma = dp.noise(dp.claimed, run, epsilon, delta);
		if (sigma === Infinity) return tell(`The noise for this ε is outside what this page is tested for: ${INSTEAD}`);
		const pairs = run.sampler === PAIRS;
		const rows = [{ ...LOOKS.printed, epsilon, sigma }, { ...LOOKS[pairs ? "pairs" : "users"], words: "true, sampled as chosen", run }];
		if (!pairs) rows.push({ ...LOOKS.pairs, words: "true, pairs sampled", run: { ...run, sampler: PAIRS } });
		for (const row of rows.slice(1)) {
			yield;
			row.epsilon = dp.account({ ...row.run, sigma }, delta);
		}
		table(rows, run);
		for (const row of rows.slice(1)) {
			yield;
			row.sigma = epsilon > SMALLEST && epsilon < MOST ? dp.noise(dp.account, row.run, epsilon, delta) : NaN;
		}
		table(rows, run);
		box.dataset.answered = now;
		yield* curves({ ...run, sigma }, rows);
		box.dataset.drawn = now;
	}

	function tell(message) {
		answer.replaceChildren(make("p", { class: "edp-message" }, message));
		graph.replaceChildren();
		box.dataset.answered = box.dataset.drawn = turn;
	}

	function table(rows, run) {
		const cell = (value, shown) => make("td", {}, value === undefined ? "…" : shown(value));
		const noisy = (value) => !Number.isFinite(value) ? "–"
			: `${value <= BOX.sigma[0] * sizeOf(run) ? "≤ " : ""}${digits(value, 1)}`;
		answer.replaceChildren(make("table", {},
			make("caption", {}, `For ${run.unit === "user" ? "one user" : "one element of one user"}, whose data are replaced; `
				+ `δ = ${written(run.delta)}. What is called true is an upper bound.`),
			make("thead", {}, make("tr", {}, make("td"), make("th", { scope: "col" }, `ε at σ = ${noisy(rows[0].sigma)}`),
				make("th", { scope: "col" }, `σ for ε = ${digits(rows[0].epsilon)}`))),
			make("tbody", {}, ...rows.map((row) => make("tr", { style: `--edp-row: var(--edp-${row.colour})` },
				make("th", { scope: "row" }, row.words), cell(row.epsilon, row.run ? bounded : digits), cell(row.sigma, noisy))))));
	}

	function* curves(run, rows) {
		const { delta, against } = run, axis = BOX[against], scale = against === "sigma" ? sizeOf(run) : 1;
		const whole = against === "steps" || against === "elements";
		const found = spread(axis[0] * scale, axis[1] * scale, 21, true).map((x) => whole ? Math.round(x) : x);
		const drawn = rows.map(({ words, colour, dash }) => ({ words, colour, dash, points: [] })), heights = [];
		for (const x of new Set(found)) {
			for (const [i, row] of rows.entries()) {
				yield;
				const which = { ...run, sampler: (row.run || run).sampler, [against]: x };
				if (outside(which, which.delta).length) continue;
				const height = Math.max((i ? dp.account : dp.claimed)(which, which.delta), SMALLEST);
				if (height <= MOST) { drawn[i].points.push([x, height]); heights.push(height); }
			}
		}
		const marks = rows.slice(0, 2).filter(({ epsilon }) => run[against] !== null && epsilon <= MOST)
			.map(({ epsilon, colour }) => ({ at: [run[against], Math.max(epsilon, SMALLEST)], colour }));
		const words = AXES[against];
		if (!heights.length) return graph.replaceChildren(`Every ε is over ${MOST} here.`);
		plot(graph, {
			x: { low: found[0], high: found[20], log: true, words }, lines: drawn, marks,
			y: { low: Math.min(...heights) / 1.3, high: Math.max(...heights) * 1.3, log: true, words: "ε" },
			words: `ε against ${words}. At the chosen value the paper prints ${digits(rows[0].epsilon)} `
				+ `and the true ε is at most ${bounded(rows[1].epsilon)}.`,
		});
	}

	update();
}

/** Run a generator a little at a time, as long as it is wanted. */
function queue(job, wanted) {
	const begun = performance.now();
	while (wanted()) {
		if (job.next().done) return;
		if (performance.now() - begun > 24) return void setTimeout(() => queue(job, wanted), 0);
	}
}

/* --- Start --- */

dp.figures = { calculator };
dp.tools = { make, range, spread, digits, controls, plot, button, LOOKS };

function startAll() {
	for (const holder of document.querySelectorAll(".edp-live")) {
		const box = make("div", { class: "edp-live-box", role: "group", "aria-label": `Live figure: ${holder.dataset.live}` });
		holder.prepend(box);
		try {
			dp.figures[holder.dataset.live](box, Object.fromEntries(new URLSearchParams(holder.dataset.start)));
			holder.classList.add("edp-live-on");
		} catch (error) {  // the static figure comes back
			box.remove();
			holder.classList.add("edp-live-failed");
			console.error(error);
		}
	}
}

document.addEventListener("DOMContentLoaded", startAll);  // after the other deferred scripts
})();
