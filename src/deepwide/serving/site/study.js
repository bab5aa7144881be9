// One study: verdicts first, then its pictures and numbers.
import { ask, by, facts, general, make, notes, Refused, setText, showInterval, showSeconds, state, tableOf } from "./dom.js";

const KEY = location.pathname.split("/").pop();
const MOST_ROWS = 100;
const show = (value) => (typeof value === "number" ? (Number.isInteger(value) ? value.toLocaleString("en-US") : general(value, 5)) : value === null || value === undefined ? "" : String(value));

function claim(verdict) {
  return make("div", { class: "claim" },
    make("p", {}, make("strong", {}, state(verdict.outcome)), `: ${verdict.claim}`),
    verdict.measured ? make("p", {}, `Measured: ${showInterval(verdict.measured)}`) : null,
    make("p", { class: "faint" }, `Rule: ${verdict.rule}`),
    ...verdict.notes.map((note) => make("p", { class: "faint" }, `${note.text}.`)));
}

function table(name, rows) {
  const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const isText = (key) => rows.some((row) => typeof row[key] === "string");
  const columns = keys.map((key) => ({ title: key.replaceAll("_", " "), text: isText(key), show: (row) => show(row[key]) }));
  return make("details", {}, make("summary", {}, `${name}: ${rows.length} rows`),
    make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": name }, tableOf(columns, rows.slice(0, MOST_ROWS))),
    rows.length > MOST_ROWS ? make("p", { class: "faint" }, `${rows.length - MOST_ROWS} more rows are in the report.`) : null);
}

async function main() {
  const [study, index] = await Promise.all([ask(`/api/studies/${KEY}`), ask("/api/index")]);
  const entry = index.studies.find(({ id }) => id === KEY);
  document.title = `deepwide: ${study.study}`;
  setText(by("name"), `${study.study} (${study.preset})`);
  setText(by("question"), study.question);
  by("source").replaceChildren(...study.source.split(/(https?:\/\/\S+)/).map((text, i) => (i % 2 ? make("a", { href: text, rel: "noreferrer" }, text) : text)));
  by("report").href = `/api/studies/${KEY}/report`;
  notes(by("warnings"), study.notes.map((note) => `${note.text}.`));
  by("verdicts").replaceChildren(...study.verdicts.map(claim));
  const figures = entry?.figures ?? [];
  by("figures").replaceChildren(...(figures.length ? figures.map((name) => make("figure", {},
    make("img", { src: `/api/studies/${KEY}/figures/${encodeURIComponent(name)}`, alt: `${name.replace(/\.svg$/, "")}; the numbers are in the tables below`, loading: "lazy" }),
    make("figcaption", {}, name.replace(/\.svg$/, "").replaceAll("_", " ")))) : [make("p", { class: "empty" }, "This study drew none.")]));
  notes(by("notes"), study.measured.notes.map((note) => `${note.text}.`));
  const numbers = Object.entries(study.measured.numbers).map(([name, interval]) => ({ name, ...interval }));
  by("numbers-table").replaceChildren(...(numbers.length ? [tableOf([
    { title: "number", text: true, key: "name" }, { title: "value", show: ({ value }) => show(value) },
    { title: "95% from", show: ({ low }) => show(low) }, { title: "to", show: ({ high }) => show(high) },
  ], numbers)] : []));
  by("tables").replaceChildren(...Object.entries(study.measured.tables).filter(([, rows]) => rows.length).map(([name, rows]) => table(name, rows)));
  facts(by("settings-list"), [
    ...Object.entries(study.settings).map(([name, value]) => [name, JSON.stringify(value)]),
    ["time", showSeconds(study.seconds)],
    ...Object.entries(study.code).map(([name, version]) => [`${name} ${name === "source" ? "hash" : "version"}`, version]),
  ]);
}

main().catch((error) => {
  if (!(error instanceof Refused)) throw error;
  setText(by("alarm"), error.message);
});
