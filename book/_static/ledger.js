// The ledger's filters: a row is shown if it has every value that is chosen. Works from file://, without a library.
document.addEventListener("DOMContentLoaded", () => {
  for (const ledger of document.querySelectorAll(".edp-ledger")) {
    const filters = [...ledger.querySelectorAll("select[data-filter]")];
    const rows = [...ledger.querySelectorAll("tbody tr")];
    const count = ledger.querySelector("output");
    const apply = () => {
      for (const row of rows) {
        row.hidden = filters.some((one) => one.value && row.dataset[one.dataset.filter] !== one.value);
      }
      count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} statements`;
    };
    filters.forEach((one) => one.addEventListener("change", apply));
    apply();
    const open = () => {
      const row = location.hash && ledger.querySelector(`tr[id="${CSS.escape(location.hash.slice(1))}"]`);
      if (row) {
        filters.forEach((one) => (one.value = ""));
        apply();
        row.querySelector("details").open = true;
        row.scrollIntoView();
      }
    };
    window.addEventListener("hashchange", open);
    open();
  }
});
