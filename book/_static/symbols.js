// A symbol in a displayed equation, or its name in a code cell, says what it means when the pointer rests on it, and
// leads to the glossary when it is clicked. What it means is read from the fold of symbols at the top of the page.
window.addEventListener("load", async () => {
  const entries = [...document.querySelectorAll(".edp-symbols dt")];
  if (!entries.length || !window.MathJax?.startup) return;
  await MathJax.startup.promise;
  // MathJax draws a variable as one slanted character; upright words and blackboard letters are no variables.
  const letter = (node) => {
    const drawn = node.querySelectorAll("[data-c]"), code = parseInt(drawn[0]?.dataset.c, 16);
    const slanted = drawn.length === 1 && code >= 0x1d434 && code <= 0x1d71b;
    return slanted ? String.fromCodePoint(code).normalize("NFKC") : undefined;
  };
  // A letter with an index is another symbol than the letter alone, and with index 0 than with others.
  const symbol = (node) => {
    const name = letter(node), outer = node.closest('g[data-mml-node="msub"], g[data-mml-node="msubsup"]');
    if (!name || !outer?.firstElementChild.contains(node)) return name;
    // An exponent is drawn before the index.
    const index = [...outer.lastElementChild.querySelectorAll("[data-c]")].map((drawn) => drawn.dataset.c);
    return `${name}_${index.join() === "30" ? "0" : ""}`;
  };
  const variables = (root) => [...root.querySelectorAll('g[data-mml-node="mi"]')];
  const meanings = new Map();
  for (const entry of entries) {
    for (const formula of entry.querySelectorAll("mjx-container")) {
      const [first] = variables(formula), name = first && symbol(first);
      if (name) meanings.set(name, { words: entry.nextElementSibling.dataset.words, href: entry.firstElementChild.href });
    }
  }
  const explain = (node, name, title) => {
    node.classList.add("edp-symbol");
    node.addEventListener("click", () => { location.href = meanings.get(name).href; });
    title(meanings.get(name).words);
  };
  for (const node of [...document.querySelectorAll('.bd-article mjx-container[display="true"]')].flatMap(variables)) {
    const name = symbol(node);
    if (meanings.has(name)) {
      explain(node, name, (words) => {
        const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
        title.textContent = words;
        node.prepend(title);
      });
    }
  }
  const names = { epsilon: "ε", delta: "δ", sigma: "σ", rho: "ρ", q: "q", n: "n", m: "m", K: "K" };
  for (const node of document.querySelectorAll(".bd-article .cell_input .highlight .n")) {
    const name = names[node.textContent];
    if (meanings.has(name)) explain(node, name, (words) => { node.title = words; });
  }
});
