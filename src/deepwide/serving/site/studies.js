// What has been run, with its verdicts; and what could be.
import { ask, by, listen, make, setText, showSeconds, state, tableOf } from "./dom.js";

function card(study) {
  const title = study.status === "finished" ? make("a", { href: `/studies/${study.id}` }, study.study) : make("span", {}, study.study);
  const verdicts = make("ul", {}, ...study.verdicts.map((verdict, i) => make("li", {}, make("strong", {}, state(verdict.outcome)), `: ${verdict.claim}`, study.measured[i] ? make("span", { class: "faint" }, ` Measured: ${study.measured[i]}.`) : null)));
  const status = { finished: `${study.preset}, ${showSeconds(study.seconds)}`, started: "not finished yet", unreadable: "unreadable" }[study.status];
  return make("article", { class: "card" },
    make("div", { class: "bar" }, make("h3", { class: "figure-title" }, title), make("span", { class: "faint" }, `${study.folder || "."} · ${status}`)),
    study.question ? make("p", {}, study.question) : null,
    study.error ? make("p", { class: "alarm" }, study.error) : null,
    study.verdicts.length ? verdicts : null);
}

listen("/api/index/events", {
  index(index) {
    setText(by("about"), `Published claims about depth, tested: results under ${index.folder}`);
    const focused = document.activeElement?.getAttribute?.("href");
    by("studies").replaceChildren(...(index.studies.length ? index.studies.map(card) : [make("p", { class: "empty" }, "No study's folder is here yet.")]));
    if (focused?.startsWith("/studies/")) [...by("studies").querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus();
  },
}, by("connection"));

ask("/api/studies/known").then((known) => {
  by("known").replaceChildren(tableOf([
    { title: "study", text: true, key: "name" },
    { title: "question", text: true, key: "question" },
    { title: "source", text: true, show: ({ citation, link }) => make("a", { href: /^https?:/.test(link) ? link : undefined, rel: "noreferrer" }, citation) },
    { title: "claims", show: ({ claims }) => claims.length },
    { title: "time on two cores", text: true, show: ({ expected_seconds: seconds }) => Object.entries(seconds).map(([preset, time]) => `${preset} ${showSeconds(time)}`).join(", ") },
  ], known));
}, (error) => setText(by("alarm"), error.message));
