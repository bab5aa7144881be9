// On the planner's page: what the browser does not compute is asked of the library.
import { ask, by, facts, make, Refused, setText, showBytes, showCount, showInterval } from "./dom.js";

const PARTS = { params: ["parameters", showCount], flops: ["FLOPs per sequence", showCount], training_memory: ["training memory", showBytes], inference_memory: ["inference memory", showBytes] };

async function fillNames() {
  const models = await ask("/api/models");
  by("public-names").replaceChildren(...models.map(({ name, organisation }) => make("option", { value: name }, organisation)));
}

async function judge() {
  const model = by("public").value.trim();
  if (!model) return;
  try {
    const query = new URLSearchParams({ model, law: by("law").value });
    const audit = await ask(`/api/audit?${query}`);
    const { shape, verdict, loss_percent: loss, instead } = audit;
    const list = make("dl");
    facts(list, [
      ["model", `${audit.name}, ${shape.depth} layers × ${shape.width}`],
      ["verdict", `${verdict.outcome}, cost ${audit.cost}`],
      ["depth / law", showInterval(audit.depth_over_law)],
      ["loss", loss ? `${showInterval(loss, 2)} %` : "no data"],
      ["instead", instead ? `${instead.depth} × ${instead.width}` : ""],
      ["law", audit.law],
    ]);
    by("judged").replaceChildren(list, ...audit.notes.map((note) => make("p", { class: "faint" }, `${note.text}.`)));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    by("judged").replaceChildren(make("p", {}, error.message));
  }
}

let shown = null;
async function count() {
  const settings = location.hash.slice(1);
  if (!by("counts").open || settings === shown) return;
  shown = settings;
  try {
    const answer = await ask(`/api/plan/count?${settings}`);
    const rows = Object.entries(PARTS).flatMap(([key, [title, show]]) => Object.entries(answer[key])
      .filter(([, value]) => typeof value === "number" && value > 0)
      .map(([part, value]) => [`${title}: ${part.replaceAll("_", " ")}`, `${show(value)}${Number.isInteger(value) && key === "params" ? ` (${value.toLocaleString("en-US")})` : ""}`]));
    facts(by("count-list"), rows);
    setText(by("counts-about"), `By the library, exact: ${answer.name}.`);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    by("count-list").replaceChildren();
    setText(by("counts-about"), error.message);
  }
}

by("judge").addEventListener("click", () => void judge());
by("public").addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  void judge();
});
by("public").addEventListener("focus", () => void fillNames(), { once: true });
by("counts").addEventListener("toggle", () => void count());
// The page writes its settings into the address when a drag has ended, and tells a screen reader then.
new MutationObserver(() => void count()).observe(by("status"), { childList: true, characterData: true, subtree: true });
