// Separation rank: bounds and count at once, and a measurement that can be watched and cancelled.
import { Chart } from "./chart.js";
import { ask, by, debounce, facts, fixed, general, make, notes, Refused, setText, showSeconds, tableOf } from "./dom.js";
import { parseJson } from "./json.js";

const LOG = { title: "log₃ of the separation rank", kind: "symlog" };
// A theorem has a colour, what it says at least is dashed; as in figures/separation.py
const LINES = { "Theorem 1, at most": [0, ""], "Theorem 1, at least": [0, "5 3"], "Theorem 2, at most": [1, ""], "Theorem 2, at least": [1, "5 3"], "dimension count": [2, ""], measured: [4, ""] };
const WITH_HEADS = [3, "9 3 2 3"];
const charts = Object.fromEntries(["depth", "width"].map((axis) => [axis, new Chart(by(`by-${axis}`), {
  x: { title: axis === "depth" ? "depth, layers" : "width", kind: axis === "depth" ? "linear" : "log", whole: true, show: (x) => general(x, 6) },
  y: LOG, told: by(`by-${axis}-pointed`), keys: by(`by-${axis}-keys`),
})]));
const whole = (id) => by(id).value.trim();
const shapeQuery = () => new URLSearchParams({ depth: whole("depth"), width: whole("width"), heads: whole("heads") });

let latest = 0;
async function show() {
  const turn = (latest += 1);
  const query = shapeQuery();
  history.replaceState(null, "", `#${query}`);
  try {
    const [bounds, curves] = await Promise.all([ask(`/api/bounds?${query}`), ask(`/api/bounds/curves?${query}`)]);
    const exact = await exactCount(query);
    if (turn !== latest) return;
    setText(by("alarm"), "");
    showBounds(bounds, exact);
    for (const axis of ["depth", "width"]) showPanel(axis, curves[`by_${axis}`]);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (turn === latest) setText(by("alarm"), error.message);
  }
}

// Every digit of the dimension count, where its blocks can be listed
async function exactCount(query) {
  try {
    const { blocks } = await ask(`/api/separation/count?${query}`, {}, parseJson);
    const total = blocks.reduce((sum, block) => sum + BigInt(block), 0n);
    return { total: total.toString(), blocks: blocks.length };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return null;
  }
}

const spaced = (digits) => digits.replaceAll(/\B(?=(\d{3})+$)/g, ",");

function showBounds(bounds, exact) {
  setText(by("why"), `${bounds.why}.`);
  const sides = [[`Theorem ${bounds.theorem}, at least`, bounds.lower], [`Theorem ${bounds.theorem}, at most`, bounds.upper], ["dimension count, at most", bounds.dimension_count], ["less relations, at most", bounds.less_relations], [`with ${bounds.heads} heads, at most`, bounds.with_heads]];
  const rows = sides.filter(([, side]) => side).map(([name, side]) => ({ name, ...side }));
  by("bounds").replaceChildren(tableOf([
    { title: "bound", text: true, key: "name" },
    { title: "log₃", show: (row) => general(row.log3, 5) },
    { title: "about", show: (row) => row.about ?? "trivial" },
    { title: "formula", text: true, key: "formula" },
  ], rows));
  const texts = bounds.notes.map((note) => note.text);
  if (exact) texts.unshift(`Exact dimension count${bounds.heads > 1 ? ` with ${bounds.heads} heads` : ""}, ${exact.blocks} blocks: ${exact.total.length > 60 ? `${spaced(exact.total.slice(0, 60))}… (${exact.total.length} digits)` : spaced(exact.total)}.`);
  notes(by("notes"), texts);
}

function showPanel(axis, panel) {
  setText(by(`by-${axis}-title`), `Against ${axis}, at ${panel.title}`);
  const series = panel.curves.map((curve) => ({
    name: curve.name, colour: (LINES[curve.name] ?? WITH_HEADS)[0], dash: (LINES[curve.name] ?? WITH_HEADS)[1], points: curve.points, dots: true, hollow: curve.name === "measured", line: curve.name !== "measured",
  }));
  const label = axis === "depth" ? `threshold log₃ d = ${general(panel.threshold, 3)}` : `threshold 3^L = ${general(panel.threshold, 4)}`;
  charts[axis].draw(series, [{ x: panel.threshold, label }]);
  notes(by(`by-${axis}-notes`), panel.notes.map((note) => note.text));
}

// ---- measurements

let current = null; // {id, stream}

function follow(id) {
  current?.stream.close();
  const stream = new EventSource(`/api/measurements/${id}/events`);
  current = { id, stream };
  stream.addEventListener("measurement", (event) => {
    const state = JSON.parse(event.data);
    showMeasurement(state);
    if (state.state !== "running") {
      stream.close();
      current = null;
      void showMeasured();
      void show();
    }
  });
}

function showMeasurement({ wanted, state, stage, share, seconds, error, certificate, forecast, notes: remarks }) {
  by("measurement").hidden = false;
  by("cancel").hidden = state !== "running";
  by("progress").hidden = state !== "running";
  if (share === null) by("progress").removeAttribute("value");
  else by("progress").value = share;
  setText(by("measurement-title"), `Depth ${wanted.depth}, width ${wanted.width}, ${wanted.heads} head${wanted.heads === 1 ? "" : "s"}${wanted.residual ? ", residual" : ""}${wanted.causal ? ", causal" : ""}, seed ${wanted.seed}`);
  const expected = forecast.seconds + (forecast.confirms ? forecast.confirm_seconds : 0);
  const words = {
    running: `${share === null ? stage : `${stage}: ${fixed(100 * share, 0)}%`}, ${expected < 1 ? "less than a second" : `about ${showSeconds(expected)}`} of computing on a quiet machine`,
    done: `Measured in ${showSeconds(seconds)}.`,
    cancelled: `Cancelled after ${showSeconds(seconds)}: its process has ended.`,
    failed: error,
    "too slow": error,
  };
  setText(by("stage"), words[state]);
  facts(by("certificate"), certificate ? [
    ["rank", String(certificate.rank)],
    ["upper bound", `${certificate.bound}${certificate.rank === certificate.bound ? ": reached, so the rank is proved" : ": not reached, so the rank is a proved lower bound"}`],
    ["by block", certificate.blocks.map((rank, k) => `${rank} of ${certificate.block_bounds[k]}`).join(", ")],
    ["modulo", `${certificate.prime}${certificate.confirmed ? `, confirmed modulo ${certificate.confirmed.prime} by FLINT` : ""}`],
    ["notes", remarks.join(" ")],
  ] : []);
}

by("shape").addEventListener("submit", async (event) => {
  event.preventDefault();
  const number = (id) => Number(whole(id));
  const wanted = { depth: number("depth"), width: number("width"), heads: number("heads"), residual: by("residual").checked, causal: by("causal").checked, seed: number("seed") };
  by("measure").disabled = true;
  try {
    const started = await ask("/api/measurements", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(wanted) });
    setText(by("refused"), "");
    showMeasurement(started);
    follow(started.id);
    by("cancel").focus();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    setText(by("refused"), error.message);
  }
  by("measure").disabled = false;
});

by("cancel").addEventListener("click", async () => {
  if (!current) return;
  try {
    showMeasurement(await ask(`/api/measurements/${current.id}`, { method: "DELETE" }));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    setText(by("refused"), error.message);
  }
  by("measure").focus();
});

async function showMeasured() {
  const certificates = await ask("/api/certificates");
  setText(by("measured-about"), certificates.length ? `${certificates.length}: certificates under the served folder, and what was measured here since the server started.` : "None yet: measure one, or serve a folder with certificates.");
  const rows = certificates.sort((a, b) => a.case.depth - b.case.depth || a.case.width - b.case.width || a.case.heads - b.case.heads);
  by("measured").replaceChildren(...(rows.length ? [tableOf([
    { title: "depth", show: (row) => row.case.depth },
    { title: "width", show: (row) => row.case.width },
    { title: "heads", show: (row) => row.case.heads },
    { title: "kind", text: true, show: (row) => [row.case.residual ? "residual" : "", row.case.causal ? `causal, positions ${row.case.sides}` : "", row.case.weights === "random" ? `seed ${row.case.seed}` : row.case.weights].filter((word) => word).join(", ") },
    { title: "rank", show: (row) => spaced(String(row.rank)) },
    { title: "upper bound", show: (row) => spaced(String(row.bound)) },
    { title: "proved equal", text: true, show: (row) => (row.rank === row.bound ? "yes" : "no") },
    { title: "confirmed", text: true, show: (row) => (row.confirmed ? "by FLINT" : "no") },
  ], rows)] : []));
}

for (const [name, value] of new URLSearchParams(location.hash.slice(1))) if (["depth", "width", "heads"].includes(name)) by(name).value = value.slice(0, 12);
for (const id of ["depth", "width", "heads"]) by(id).addEventListener("input", debounce(show, 150));
// What is still running from before this page was opened
ask("/api/measurements").then((states) => {
  const running = states.find(({ state }) => state === "running");
  if (running && !current) follow(running.id);
}, () => {});
void show();
void showMeasured();
