// Every sweep under the folder, brought up to date as runs finish.
import { by, grouped, listen, make, setText, tableOf } from "./dom.js";

function share({ runs, finished }) {
  const bar = make("progress", { max: Math.max(1, runs), value: finished, "aria-label": `${finished} of ${runs} runs finished` });
  return bar;
}

const COLUMNS = [
  { title: "sweep", text: true, show: (sweep) => make("a", { href: `/sweeps/${sweep.id}` }, sweep.name) },
  { title: "runs", show: ({ runs }) => (runs ? grouped(runs) : "not begun") },
  { title: "finished", show: ({ finished }) => grouped(finished) },
  { title: "share", text: true, show: share },
  { title: "folder", text: true, key: "folder" },
  { title: "spec", text: true, show: ({ spec }) => spec || "none" },
];

listen("/api/index/events", {
  index(index) {
    setText(by("about"), `Sweeps under ${index.folder}`);
    setText(by("alarm"), index.complete ? "" : "There are too many folders: the walk ended early, and sweeps may be missing. Serve a smaller folder.");
    const focused = document.activeElement?.getAttribute?.("href");
    by("sweeps").replaceChildren(index.sweeps.length ? tableOf(COLUMNS, index.sweeps) : make("p", { class: "empty" }, "No folder of runs and no sweep's TOML file is here. Serve the folder in which you run sweeps."));
    if (focused) by("sweeps").querySelector(`a[href="${CSS.escape(focused).replaceAll("\\/", "/")}"]`)?.focus();
  },
}, by("connection"));
