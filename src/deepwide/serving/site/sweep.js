// One sweep, live: where it stands, its losses and curves, every run in a table, and the law on request.
import { Chart, CATEGORIES } from "./chart.js";
import { ask, by, debounce, facts, general, grouped, listen, make, notes, Refused, setText, showCount, showInterval, showSeconds } from "./dom.js";
import { RunTable } from "./table.js";

const KEY = location.pathname.split("/").pop();
const BAD = new Set(["failed", "oom", "unreadable"]);
const MOST_CURVES = 8;
const MOST_DOTS = 1500;
const cells = new Map();
const chosen = new Map(); // id: colour
let standing = null;
let only = null;
let touched = false; // whether the reader has chosen runs

// An error without the folders before the run's own
function shortened({ id, error }) {
  const at = error.indexOf(`${id}/`);
  return at < 0 ? error : error.slice(at + id.length + 1);
}

const COLUMNS = [
  { title: "state", show: (cell) => cell.state.replaceAll("_", " "), value: (cell) => cell.state, state: true },
  { title: "run", show: (cell) => (cell.name === cell.id ? cell.id : `${cell.name} · ${cell.id.slice(0, 6)}`), value: (cell) => cell.name, hint: true },
  { title: "depth", show: (cell) => cell.depth || "", value: (cell) => cell.depth || null, number: true },
  { title: "width", show: (cell) => (cell.width ? grouped(cell.width) : ""), value: (cell) => cell.width || null, number: true },
  { title: "blocks", show: (cell) => (cell.block_params ? showCount(cell.block_params) : ""), value: (cell) => cell.block_params || null, number: true },
  { title: "step", show: (cell) => (cell.steps ? `${cell.step ?? 0} / ${cell.steps}` : ""), value: (cell) => cell.step, number: true },
  { title: "loss", show: (cell) => (cell.loss === null ? "" : general(cell.loss, 5)), value: (cell) => cell.loss, number: true },
  { title: "time", show: (cell) => (cell.seconds && cell.state !== "running" ? showSeconds(cell.seconds) : ""), value: (cell) => cell.seconds, number: true },
  { title: "remark", show: (cell) => shortened(cell) || (cell.owner ? `on ${cell.owner}` : ""), value: (cell) => cell.error, class: "error", hint: true },
].map((column) => ({ ...column, show: (cell) => String(column.show(cell)) }));

const table = new RunTable(by("runs"), COLUMNS, { onChoose: choose });
table.onActive = (cell) => setText(by("remark"), cell?.error ? `${cell.name}: ${cell.error}` : "");
table.onSort = () => {
  by("order").value = table.sort ? String(COLUMNS.indexOf(table.sort)) : "";
  showRows();
};
by("order").append(make("option", { value: "" }, "as in the sweep"), ...COLUMNS.map(({ title }, i) => make("option", { value: i }, title)));
by("order").addEventListener("change", () => {
  const column = COLUMNS[by("order").value];
  if (column) table.sortBy(column);
  else {
    table.sort = null;
    showRows();
  }
});

const losses = new Chart(by("losses"), {
  x: { title: "block parameters", kind: "log", show: showCount }, y: { title: "loss (nats per token, or the task's)", kind: "log" }, told: by("losses-pointed"), keys: by("losses-keys"),
});
const curves = new Chart(by("curves"), {
  x: { title: "step", show: (step) => grouped(Math.round(step)), whole: true }, y: { title: "loss (nats per token, or the task's)", kind: "log" }, told: by("curves-pointed"), keys: by("curves-keys"),
});

// ---- what the stream tells

let view = 0;
function changed() {
  if (!view) {
    view = setTimeout(() => {
      view = 0;
      showStanding();
      showRows();
    }, 200);
  }
}

listen(`/api/sweeps/${KEY}/events`, {
  begin() {
    cells.clear();
  },
  change(change) {
    standing = change;
    for (const cell of change.cells) cells.set(cell.id, Object.assign(cell, { bad: BAD.has(cell.state) }));
    for (const id of change.gone) cells.delete(id);
    changed();
    drawLosses();
    if (change.cells.some((cell) => chosen.has(cell.id)) || !touched) drawCurves();
  },
}, by("connection"));

// An unknown address has no stream to listen to: say why
ask(`/api/sweeps/${KEY}`).then((state) => {
  setText(by("name"), state.name);
  document.title = `deepwide: ${state.name}`;
  notes(by("notes"), state.notes.map((note) => note.text));
}, (error) => {
  if (!(error instanceof Refused)) throw error;
  setText(by("alarm"), error.message);
  setText(by("standing"), "");
});

function showStanding() {
  if (!standing) return;
  const { counts, left, total, unread, expected_seconds: seconds } = standing;
  setText(by("name"), standing.name);
  by("progress").max = Math.max(1, total);
  by("progress").value = total - left;
  const reading = unread ? `, reading ${grouped(unread)} more` : "";
  const broken = counts.unreadable ?? 0;
  const lost = broken ? `, ${grouped(broken)} cannot be read` : "";
  const ended = total - left - broken;
  const time = !left ? "" : seconds !== null ? `, about ${showSeconds(seconds)} left at this pace` : counts.running ? ", time left is known when one has finished" : ", nobody is working on the rest";
  setText(by("standing"), `${grouped(ended)} of ${grouped(total)} runs finished${lost}${time}${reading}`);
  const words = Object.entries(counts);
  const box = by("states");
  while (box.children.length > words.length) box.lastElementChild.remove();
  while (box.children.length < words.length) {
    const button = make("button", { type: "button" });
    button.addEventListener("click", () => {
      only = only === button.value ? null : button.value;
      showStanding();
      showRows();
    });
    box.append(button);
  }
  words.forEach(([word, count], i) => {
    const button = box.children[i];
    button.value = word;
    button.className = `state ${word}`;
    button.setAttribute("aria-pressed", String(only === word));
    setText(button, `${grouped(count)} ${word.replaceAll("_", " ")}`);
  });
}

function showRows() {
  const word = by("find").value.trim().toLowerCase();
  let rows = [...cells.values()];
  if (only) rows = rows.filter((cell) => cell.state === only);
  if (word) rows = rows.filter((cell) => cell.name.toLowerCase().includes(word) || cell.id.includes(word) || cell.error.toLowerCase().includes(word));
  table.show(table.ordered(rows));
  setText(by("shown"), rows.length === cells.size ? "" : `${grouped(rows.length)} of ${grouped(cells.size)} runs`);
}
by("find").addEventListener("input", debounce(showRows, 120));

// ---- pictures

let lossesAt = 0;
let lossesTimer = 0;
function drawLosses() {
  if (lossesTimer) return;
  lossesTimer = setTimeout(() => {
    lossesTimer = 0;
    lossesAt = performance.now();
    const byDepth = new Map();
    const done = [...cells.values()].filter((cell) => cell.state === "done" && cell.loss > 0 && cell.block_params);
    const stride = Math.max(1, Math.ceil(done.length / MOST_DOTS));
    done.forEach((cell, i) => {
      if (!byDepth.has(cell.depth)) byDepth.set(cell.depth, { dots: [], best: new Map() });
      const group = byDepth.get(cell.depth);
      if (i % stride === 0) group.dots.push([cell.block_params, cell.loss, `${cell.name}: loss ${general(cell.loss, 5)}`]);
      const best = group.best.get(cell.block_params);
      if (best === undefined || cell.loss < best) group.best.set(cell.block_params, cell.loss);
    });
    const depths = [...byDepth.keys()].sort((a, b) => a - b);
    const series = depths.flatMap((depth, i) => {
      const shade = i / Math.max(1, depths.length - 1);
      const { dots, best } = byDepth.get(depth);
      const line = [...best].sort(([a], [b]) => a - b);
      return [
        { name: `depth ${depth}`, shade, points: line },
        { name: "", shade, points: dots, line: false, dots: true },
      ];
    });
    losses.draw(series);
    setText(by("losses-about"), done.length ? `${grouped(done.length)} finished runs; lines join the least losses of a depth. The same numbers are in the table of runs.` : "No run has finished.");
  }, Math.max(0, lossesAt + 1000 - performance.now()));
}

function choose(cell) {
  touched = true;
  if (chosen.has(cell.id)) chosen.delete(cell.id);
  else {
    if (chosen.size >= MOST_CURVES) chosen.delete(chosen.keys().next().value);
    const used = new Set(chosen.values());
    chosen.set(cell.id, [...Array(CATEGORIES).keys()].find((colour) => !used.has(colour)) ?? 0);
  }
  table.chosen = chosen;
  drawCurves();
}

// Until the reader chooses: runs that are running, or the best ones
function preset() {
  if (touched) return;
  const all = [...cells.values()];
  const running = all.filter((cell) => cell.state === "running").slice(0, 4);
  const best = all.filter((cell) => cell.state === "done" && cell.loss !== null).sort((a, b) => a.loss - b.loss).slice(0, 4 - running.length);
  chosen.clear();
  [...running, ...best].forEach((cell, colour) => chosen.set(cell.id, colour));
  table.chosen = chosen;
}

const CHOOSE = by("curves-about").textContent;
let curvesTimer = 0;
let asking = null;
function drawCurves() {
  if (curvesTimer) return;
  curvesTimer = setTimeout(async () => {
    curvesTimer = 0;
    preset();
    asking?.abort();
    if (!chosen.size) {
      curves.draw([]);
      return;
    }
    asking = new AbortController();
    try {
      const query = new URLSearchParams([...chosen.keys()].map((id) => ["run", id]));
      const answers = await ask(`/api/sweeps/${KEY}/curves?${query}`, { signal: asking.signal });
      curves.draw(answers.flatMap(({ id, points, validation }) => {
        const name = cells.get(id)?.name ?? id;
        const colour = chosen.get(id) ?? 0;
        return [
          { name, colour, points: points.filter(([, loss]) => loss > 0), dots: points.length < 40 },
          { name: `${name}, validation`, colour, points: validation.filter(([, loss]) => loss > 0), dash: "2 3", unnamed: true },
        ];
      }));
      const remarks = answers.filter(({ note, error }) => note || error).map(({ id, note, error }) => `${cells.get(id)?.name ?? id}: ${error || `drawn from ${note}`}.`);
      setText(by("curves-about"), [CHOOSE, ...remarks].join(" "));
      table.schedule();
    } catch (error) {
      if (error.name !== "AbortError" && !(error instanceof Refused)) throw error;
    }
  }, touched ? 60 : 700);
}

// ---- the fit

by("report").href = `/api/sweeps/${KEY}/report`;
by("kind").addEventListener("change", () => {
  by("report").href = `/api/sweeps/${KEY}/report?kind=${by("kind").value}`;
});
by("fit").addEventListener("click", async () => {
  const kind = by("kind").value;
  by("fit").disabled = true;
  by("fitted").replaceChildren(make("p", {}, "Fitting; a fit with its resamples and figures takes some seconds…"));
  try {
    const { fit, figures, error, runs } = await ask(`/api/sweeps/${KEY}/fit?kind=${kind}`);
    by("fitted").replaceChildren(...(fit ? fitted(fit, figures, kind, runs) : [make("p", {}, `No law was fitted: ${error}`)]));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    by("fitted").replaceChildren(make("p", { class: "alarm" }, error.message));
  }
  by("fit").disabled = false;
});

function fitted(fit, figures, kind, runs) {
  const list = make("dl");
  const { verdict, law } = fit;
  const coefficients = law && kind !== "joint" ? Object.entries(law).filter(([, value]) => typeof value === "number").map(([name, value]) => `${name} ${general(value, 4)}`) : [];
  facts(list, [
    ["verdict", `${verdict.outcome}: ${verdict.claim}`],
    ["rule", verdict.rule],
    ["measured", showInterval(verdict.measured)],
    ["runs", `${grouped(runs)}, noise ${general(100 * fit.noise, 2)}% of loss`],
    ["law", law ? [law.about, ...coefficients].join(", ") : "none"],
    ["to plan with it", law ? `deepwide fit ${fit.source} --kind ${kind} --law law.json, then deepwide plan 1M --law law.json` : ""],
  ]);
  const warnings = make("ul", { class: "warnings" }, ...fit.warnings.map((note) => make("li", {}, `${note.text}.`)));
  const pictures = figures.map((name) => make("figure", {}, make("img", { src: `/api/sweeps/${KEY}/fit/${encodeURIComponent(name)}.svg?kind=${kind}&runs=${runs}`, alt: `${name} of the fit; the numbers are in the report` }), make("figcaption", {}, name)));
  return [...fit.headline.map((sentence) => make("p", {}, sentence)), warnings, list, ...pictures];
}
