// The page: dials in, words and a map out. Nothing is computed here; texts are set as text, never as HTML.
import { fixed, general, pythonRepr, Refusal, showBytes, showCount } from "./numbers.js";
import { Laws } from "./laws.js";
import { makePlan } from "./planner.js";
import { Float, parseJson } from "./json.js";
import { readConfig, writeConfig } from "./config.js";
import { planLines, planWords } from "./words.js";
import { auditLines, auditShape, auditWords } from "./audit.js";
import { fromFragment, parseSettings, toCommand, toFragment, toTexts } from "./settings.js";
import { DepthWidthMap, modelLine } from "./map.js";

const constants = JSON.parse(document.getElementById("constants").textContent);
const laws = new Laws(constants);
const usual = toTexts(constants.defaults);
const by = (id) => document.getElementById(id);

// ---- the budget's dial: log-uniform from 10M to 10T parameters, or what belongs to them; from less where a law of the
// page was fitted on less
const USUAL_LEAST = 1e7;
const fittedSizes = laws.all.filter((law) => !law.published && law.fitted_block_params).map((law) => law.fitted_block_params[0]);
const LEAST_DIALLED = Math.max(constants.planner.least_params, Math.min(USUAL_LEAST, ...fittedSizes.map((size) => 10 ** Math.floor(Math.log10(size)))));
const DIAL = {
  block: { low: LEAST_DIALLED, high: 1e13, show: (x) => showCount(x) },
  total: { low: LEAST_DIALLED, high: 1e13, show: (x) => showCount(x) },
  flops: { low: 1e16 * (LEAST_DIALLED / USUAL_LEAST) ** 2, high: 1e28, show: (x) => general(x, 3).replace("e+", "e") },
  memory: { low: 2 * LEAST_DIALLED, high: 2e13, show: (x) => showBytes(x).replace(" ", "") },
};
const DIAL_STEPS = Math.round((1200 * Math.log(DIAL.block.high / LEAST_DIALLED)) / Math.log(DIAL.block.high / USUAL_LEAST));
const dialAmount = (kind, step) => DIAL[kind].low * (DIAL[kind].high / DIAL[kind].low) ** (step / DIAL_STEPS);
function dialStep(kind, amount) {
  const { low, high } = DIAL[kind];
  return Math.min(DIAL_STEPS, Math.max(0, Math.round((DIAL_STEPS * Math.log(amount / low)) / Math.log(high / low))));
}

const state = { raw: { ...usual }, unknown: [], plan: null, dropped: null, audit: null };
const controls = [...document.querySelectorAll("[data-setting]")];
const map = new DepthWidthMap(by("map"), laws, constants.models);

function option(value, text) {
  const node = document.createElement("option");
  node.value = value;
  node.textContent = text;
  return node;
}

function fillChoices() {
  for (const law of laws.all.filter((each) => each.predicts)) by("law").append(option(law.key, law.published ? law.key : `${law.key}${law.file && !law.key.includes(law.file) ? ` (${law.file})` : ""}`));
  for (const [name, family] of Object.entries(constants.families)) {
    if (!family.has_experts) by("family").append(option(name, `${name}: ${family.about}`));
  }
  by("version").textContent = constants.version;
  by("dial").max = String(DIAL_STEPS);
  for (const part of document.querySelectorAll("[data-range]")) {
    const { low, high, show } = DIAL[part.dataset.range];
    part.textContent = `${show(low)} to ${show(high)}`;
  }
}

// Make a container's children one per row, keeping those that are there so that focus stays
function fill(container, rows, make, update) {
  while (container.children.length > rows.length) container.lastElementChild.remove();
  while (container.children.length < rows.length) container.append(make());
  rows.forEach((row, i) => update(container.children[i], row));
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function line(tag, prefix = "", cells = 0, cellTag = "td") {
  const node = document.createElement(tag);
  node.dataset.line = prefix;
  for (let i = 0; i < cells; i++) {
    const cell = document.createElement(i === 0 && cellTag === "td" ? "th" : cellTag);
    if (cell.tagName === "TH") cell.scope = "row";
    cell.dataset.cell = "";
    node.append(cell);
  }
  return node;
}

function showFacts(container, facts) {
  const make = () => {
    const row = line("div");
    row.append(document.createElement("dt"), document.createElement("dd"));
    row.lastElementChild.dataset.cell = "";
    return row;
  };
  fill(container, facts, make, (row, [label, text]) => {
    const [term, value] = row.children;
    setText(term, label || "best depth, measured");
    if (label) term.dataset.cell = "";
    else delete term.dataset.cell;
    setText(value, text);
  });
}

function showNotes(container, texts, prefix) {
  fill(container, texts, () => line("li", prefix), (row, text) => setText(row, `${text}.`));
}

function showOpinions(container, opinions) {
  fill(container, opinions, () => line("tr", "", 5), (row, cells) => cells.forEach((cell, i) => setText(row.children[i], cell)));
}

function candidateRow() {
  const row = line("tr", "", 10);
  const last = document.createElement("td");
  const button = document.createElement("button");
  button.type = "button";
  button.addEventListener("click", () => change({ depth: button.value, width: "" }));
  last.append(button);
  row.append(last);
  return row;
}

function showPlan(plan) {
  const words = planWords(plan, laws, constants);
  setText(by("title"), words.title);
  const [size, ...rest] = words.shape.split(" wide, ");
  setText(by("size"), `${size} wide`);
  setText(by("rest"), `${rest.join(" wide, ")} (${words.family})`);
  showNotes(by("warnings"), words.warnings, "Warning: ");
  showFacts(by("facts"), words.facts);
  fill(by("candidates"), words.candidates, candidateRow, (row, { cells, chosen, depth }) => {
    cells.forEach((cell, i) => setText(row.children[i], cell));
    row.classList.toggle("chosen", chosen);
    const button = row.lastElementChild.firstElementChild;
    const isFixed = plan.fixed === "depth" && chosen;
    setText(button, isFixed ? "unfix" : "fix");
    button.value = isFixed ? "" : String(depth);
    button.setAttribute("aria-label", isFixed ? "Let the law choose the depth again" : `Fix the depth at ${depth} layers`);
    button.hidden = chosen && !isFixed;
  });
  by("shares-section").hidden = !words.shares.length;
  fill(by("shares"), words.shares, () => line("tr", "", 7), (row, cells) => cells.forEach((cell, i) => setText(row.children[i], cell)));
  showOpinions(by("opinions"), words.opinions);
  setText(by("why"), words.reason);
  setText(by("nearest"), words.nearest);
  showNotes(by("notes"), words.notes, "Note: ");
  return words;
}

function showAudit() {
  const { dropped } = state;
  state.audit = null;
  by("audit").hidden = dropped === null;
  if (dropped === null) return;
  by("audit-refusal").textContent = "";
  by("audit-answer").hidden = true;
  try {
    if (dropped.refusal) throw new Refusal(dropped.refusal);
    const law = laws.named(state.raw.law);
    state.audit = auditShape(dropped.name, dropped.reading, law, laws, constants);
    const words = auditWords(state.audit, constants);
    setText(by("audit-name"), words.name);
    setText(by("audit-shape"), words.shape);
    setText(by("verdict"), words.verdict);
    by("verdict").className = words.outcome.replace(" ", "-");
    setText(by("audit-sentence"), words.sentence);
    showNotes(by("audit-warnings"), words.warnings, "Warning: ");
    showFacts(by("audit-facts"), words.facts);
    showNotes(by("audit-notes"), words.notes, "Note: ");
    by("audit-answer").hidden = false;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    by("audit-refusal").textContent = error.message;
  }
}

// ---- one answer for the settings of the moment

let lastLaw = "";

function answer() {
  state.plan = null;
  let refusal = state.unknown.length ? `The address has settings that this page does not know: ${state.unknown.map((name) => quotedName(name)).join(", ")}.` : "";
  let law = null;
  try {
    const settings = parseSettings(state.raw, constants);
    law = laws.named(settings.law);
    state.plan = makePlan(settings, constants, laws);
    showPlan(state.plan);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    refusal = error.message.charAt(0).toUpperCase() + error.message.slice(1);
  }
  by("refusal").textContent = refusal;
  by("refusal").hidden = !refusal;
  by("answer").hidden = state.plan === null;
  by("numbers").hidden = state.plan === null;
  if (state.raw.law !== lastLaw) {
    lastLaw = state.raw.law;
    if (law) setText(by("law-about"), aboutLaw(law));
    showKeys(law ?? laws.all[0]);
    showAudit();
  }
  map.draw(state.plan, law ?? laws.all[0], state.audit);
  setText(by("command"), commandText());
  const kind = Object.hasOwn(DIAL, state.raw.kind) ? state.raw.kind : "block";
  if (state.plan) by("dial").value = String(dialStep(kind, state.plan.budget.amount));
  by("dial").setAttribute("aria-valuetext", state.plan ? state.plan.budget.words : "no plan");
  setText(by("map-title"), state.plan
    ? `Depth–width map: the plan, ${by("size").textContent}, and other depths of the same size against the ${state.plan.law.name} law`
    : "Depth–width map");
}

// Where a law comes from: a fitted one with what it was fitted on
function aboutLaw(law) {
  const own = law.published ? law.details || law.about : [law.about, law.details].filter((text) => text).join(": ");
  const sizes = !law.published && law.fitted_block_params ? `${laws.fittedWords(law).replace("fitted", "Fitted")} block parameters` : law.status;
  return [own, law.citation, sizes].filter((text) => text).join(". ");
}

// The laws on the map, each with its line
function showKeys(law) {
  by("band-key").setAttribute("class", `key ${law.mark}`);
  setText(by("band-words"), law.own_bowl ? "95% by the law" : "95% by the law, wider by the loss data");
  const keys = laws.rivals(law).filter((each) => each.predicts);
  fill(by("law-keys"), keys, () => {
    const item = document.createElement("li");
    item.append(map.swatch(), document.createElement("span"));
    return item;
  }, (item, each) => {
    item.setAttribute("class", each.mark);
    map.drawSwatch(item.firstElementChild, each, law);
    setText(item.lastElementChild, each === law ? `${each.key} law` : each.key);
  });
}

const quotedName = (name) => pythonRepr(name.slice(0, 40));

function commandText() {
  try {
    return toCommand(state.raw, usual, laws);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return "";
  }
}

let frame = 0;
function schedule() {
  if (!frame) {
    frame = requestAnimationFrame(() => {
      frame = 0;
      answer();
    });
  }
  settle();
}

// What may wait until a drag has ended: the address, and what a screen reader is told
let settling = 0;
let resting = 0;
function settle() {
  clearTimeout(settling);
  clearTimeout(resting);
  by("numbers").classList.add("moving");
  resting = setTimeout(() => by("numbers").classList.remove("moving"), 600);
  settling = setTimeout(() => {
    const fragment = toFragment(state.raw, usual);
    if (location.hash.slice(1) !== fragment) history.replaceState(null, "", fragment ? `#${fragment}` : location.pathname + location.search);
    say(state.plan ? `${by("size").textContent}, ${by("rest").textContent}` : by("refusal").textContent);
  }, 250);
}

function say(text) {
  setText(by("status"), text);
}

function change(values) {
  Object.assign(state.raw, values);
  state.unknown = [];
  showControls();
  schedule();
}

function showControls() {
  for (const control of controls) {
    const text = state.raw[control.dataset.setting];
    if (control.type === "radio") control.checked = control.value === text;
    else if (control.type === "checkbox") control.checked = text === "true";
    else if (control.value !== text) control.value = text;
    if (control.tagName === "SELECT" && control.value !== text) control.value = usual[control.dataset.setting];
  }
  for (const part of document.querySelectorAll("[data-only]")) part.hidden = part.dataset.only !== state.raw.kind;
}

// The same model in the other kind of budget
function changeKind(kind) {
  const { plan } = state;
  const amounts = plan && { block: plan.params.block, total: plan.params.total, flops: plan.train_flops, memory: plan.inference_bytes };
  change({ kind, budget: plan ? DIAL[kind].show(Number(amounts[kind])) : DIAL[kind].show(dialAmount(kind, DIAL_STEPS / 3)) });
}

// ---- a config.json to audit

const PYTHON_TYPES = { string: "str", number: "int", bigint: "int", boolean: "bool" };

async function drop(file) {
  const { name, size } = file;
  let dropped = { name };
  try {
    if (size > constants.config.largest_bytes) throw new Refusal(`is too large for a config (${size.toLocaleString("en-US")} bytes).`);
    let text;
    try {
      text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    } catch {
      throw new Refusal("could not be read as UTF-8 text.");
    }
    const config = parseJson(text);
    if (config === null || typeof config !== "object" || Array.isArray(config) || config instanceof Float) {
      const type = config === null ? "NoneType" : Array.isArray(config) ? "list" : config instanceof Float ? "float" : PYTHON_TYPES[typeof config];
      throw new Refusal(`must hold a JSON object, not ${type}.`);
    }
    try {
      dropped.reading = readConfig(config, constants);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      throw new Refusal(`: ${error.message}`);
    }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    dropped = { name, refusal: `${name}${error.message.startsWith(":") ? "" : " "}${error.message}` };
  }
  state.dropped = dropped;
  showAudit();
  answer();
  by("audit").focus();
  say(dropped.refusal ?? by("audit-sentence").textContent);
}

function listenForFiles() {
  const isFile = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  for (const kind of ["dragenter", "dragover"]) {
    document.addEventListener(kind, (event) => {
      if (!isFile(event)) return;
      event.preventDefault();
      document.body.classList.add("dropping");
    });
  }
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) document.body.classList.remove("dropping");
  });
  document.addEventListener("drop", (event) => {
    document.body.classList.remove("dropping");
    if (!isFile(event)) return;
    event.preventDefault();
    if (event.dataTransfer.files.length) void drop(event.dataTransfer.files[0]);
  });
  by("file").addEventListener("change", () => {
    if (by("file").files.length) void drop(by("file").files[0]);
    by("file").value = "";
  });
  by("audit-close").addEventListener("click", () => {
    state.dropped = null;
    showAudit();
    answer();
    by("file").focus();
  });
}

// ---- copying

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // not allowed here: the old way
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (!done) {
      say(`The browser does not let this page copy: ${what} was not copied.`);
      return;
    }
  }
  say(`Copied ${what}.`);
  setText(by("copied"), `Copied ${what}`);
  setTimeout(() => setText(by("copied"), ""), 2500);
}

function configText() {
  if (!state.plan) return null;
  try {
    return `${JSON.stringify(writeConfig(state.plan.shape, state.plan.family, constants), null, 2)}\n`;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    setText(by("copied"), error.message);
    say(error.message);
    return null;
  }
}

function listenForCopies() {
  by("copy-config").addEventListener("click", () => {
    const text = configText();
    if (text !== null) void copy(text, "config.json");
  });
  by("save-config").addEventListener("click", () => {
    const text = configText();
    if (text === null) return;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = "config.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  });
  by("copy-command").addEventListener("click", () => void copy(commandText(), "the command"));
  by("copy-link").addEventListener("click", () => {
    const fragment = toFragment(state.raw, usual);
    void copy(location.href.replace(/#.*$/, "") + (fragment ? `#${fragment}` : ""), "the address");
  });
  by("skip").addEventListener("click", () => by("answer-start").focus());
  by("reset").addEventListener("click", () => change({ ...usual }));
}

// ---- dials

function listenForDials() {
  for (const control of controls) {
    const name = control.dataset.setting;
    control.addEventListener(control.type === "radio" || control.tagName === "SELECT" || control.type === "checkbox" ? "change" : "input", () => {
      if (name === "kind") changeKind(control.value);
      else change({ [name]: control.type === "checkbox" ? (control.checked ? "true" : "") : control.value });
    });
  }
  const kindNow = () => (Object.hasOwn(DIAL, state.raw.kind) ? state.raw.kind : "block");
  by("dial").addEventListener("input", () => {
    const kind = kindNow();
    change({ budget: DIAL[kind].show(dialAmount(kind, Number(by("dial").value))) });
  });
  const box = by("map");
  const place = (event) => {
    const frameOf = box.getBoundingClientRect();
    return [((event.clientX - frameOf.left) * map.width) / frameOf.width, ((event.clientY - frameOf.top) * map.height) / frameOf.height];
  };
  const drag = (event) => {
    const there = map.at(...place(event));
    if (there && state.raw.kind === "block") change({ budget: showCount(Math.min(1e16, Math.max(1e3, there.N))) });
  };
  box.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || state.raw.kind !== "block") return;
    box.setPointerCapture(event.pointerId);
    drag(event);
  });
  box.addEventListener("pointermove", (event) => {
    if (box.hasPointerCapture(event.pointerId)) drag(event);
    const model = map.modelAt(...place(event));
    const law = state.plan?.law ?? laws.all[0];
    setText(by("pointed"), model ? modelLine(model, laws, law) : by("pointed").dataset.usual);
  });
}

// ---- for tests and for the curious: `deepwide.plan({ budget: "7B" })` in the browser's console

const all = (given) => ({ ...constants.defaults, ...given });
const orRefusal = (lines) => {
  try {
    return lines();
  } catch (error) {
    if (error instanceof Refusal) return [`refused: ${error.message}`];
    throw error;
  }
};
globalThis.deepwide = Object.freeze({
  plan: (given = {}) => orRefusal(() => planLines(planWords(makePlan(all(given), constants, laws), laws, constants))),
  audit: (text, law = usual.law, name = "config.json") => orRefusal(() => {
    const config = parseJson(text);
    return auditLines(auditWords(auditShape(name, readConfig(config, constants), laws.named(law), laws, constants), constants));
  }),
  config: (given = {}) => {
    const plan = makePlan(all(given), constants, laws);
    return JSON.stringify(writeConfig(plan.shape, plan.family, constants), null, 2);
  },
  formats: Object.freeze({ fixed, general, showCount, showBytes }),
  show(given = {}) { // every setting at once, drawn before it returns
    Object.assign(state.raw, toTexts(all(given)));
    showControls();
    answer();
  },
});

fillChoices();
if (matchMedia("(max-width: 860px)").matches) by("settings").open = false; // on a phone the answer comes first
listenForDials();
listenForFiles();
listenForCopies();
function fromAddress() {
  const { raw, unknown } = fromFragment(location.hash, usual);
  raw.law = laws.all.find((law) => law.file === raw.law)?.key ?? raw.law; // a law's file will do for its name
  Object.assign(state, { raw, unknown });
  showControls();
  for (const control of controls) {
    const folded = control.closest("details:not(#settings)");
    if (folded && raw[control.dataset.setting] !== usual[control.dataset.setting]) folded.open = true;
  }
  answer();
  settle();
}
addEventListener("hashchange", fromAddress);
new ResizeObserver(() => {
  map.resize();
  answer();
}).observe(by("map"));
fromAddress();
