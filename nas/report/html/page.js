"use strict";
// Charts are drawn by Vega, whose expressions are interpreted here: the page allows no code but its own.
const hidden = new Set();
const rows = [...document.querySelectorAll("#architectures tbody tr")];
const heads = [...document.querySelectorAll("#architectures th")];
const topologyColumn = heads.findIndex(head => head.textContent === "topology");
const filter = document.getElementById("filter");

const charts = Promise.all([...document.querySelectorAll("[data-chart]")].map(async spec => {
  const options = { actions: { export: true, source: false, compiled: false, editor: false }, ast: true, renderer: "svg" };
  const drawn = await vegaEmbed(document.getElementById(spec.dataset.chart), JSON.parse(spec.textContent), options);
  return drawn.view;
}));
charts.then(() => document.body.dataset.drawn = "yes");

function show() {
  const words = filter.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    const cells = [...row.cells].map(cell => cell.textContent);
    row.hidden = hidden.has(cells[topologyColumn]) || !words.every(word => text.includes(word));
  }
  document.getElementById("shown").textContent = `${rows.filter(row => !row.hidden).length} of ${rows.length}`;
}

function order(head) {
  const descending = head.getAttribute("aria-sort") === "ascending";
  for (const each of heads) each.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const column = heads.indexOf(head);
  const cell = row => row.cells[column];
  rows.sort((one, other) => {
    const values = [one, other].map(row => cell(row).dataset.value);
    return values.every(value => value !== undefined)
      ? values[0] - values[1]
      : cell(one).textContent.localeCompare(cell(other).textContent, "en", { numeric: true });
  });
  if (descending) rows.reverse();
  for (const row of rows) row.parentElement.append(row);
}

filter.addEventListener("input", show);
for (const head of heads) head.querySelector("button").addEventListener("click", () => order(head));
for (const button of document.querySelectorAll("[data-topology]")) {
  button.addEventListener("click", async () => {
    const name = button.dataset.topology;
    if (!hidden.delete(name)) hidden.add(name);
    button.setAttribute("aria-pressed", String(!hidden.has(name)));
    show();
    for (const part of document.querySelectorAll("[data-of]")) part.hidden = hidden.has(part.dataset.of);
    dispatchEvent(new Event("resize"));  // charts are as wide as what they are in, and that had no width while hidden
    for (const view of await charts) view.signal("hidden", [...hidden]).runAsync();
  });
}
