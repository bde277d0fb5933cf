// The ledger's filters: a line is shown if it has every value that is chosen, and what is shown is shared out to the
// two columns in its order. Works from file://, without a library.
document.addEventListener("DOMContentLoaded", () => {
  for (const ledger of document.querySelectorAll(".edp-ledger")) {
    const filters = [...ledger.querySelectorAll("select[data-filter]")];
    const columns = [...ledger.querySelectorAll(".edp-columns > ul")];
    const rows = [...ledger.querySelectorAll(".edp-columns > ul > li")];
    const count = ledger.querySelector("output");
    const apply = () => {
      for (const row of rows) {
        row.hidden = filters.some((one) => one.value && row.dataset[one.dataset.filter] !== one.value);
      }
      const shown = rows.filter((row) => !row.hidden);
      const half = Math.ceil(shown.length / columns.length);
      shown.forEach((row, place) => columns[Math.floor(place / half)].append(row));
      count.textContent = `${shown.length} of ${rows.length} statements`;
    };
    filters.forEach((one) => one.addEventListener("change", apply));
    apply();
    const open = () => {
      const row = location.hash && rows.find((one) => one.id === decodeURIComponent(location.hash.slice(1)));
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
