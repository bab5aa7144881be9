// The settings of a plan: as people type them, in the address, for the planner, and as a command.
// `raw` holds a text for every setting, empty where it is not given; the address has those that differ from the default.
import { Refusal } from "./numbers.js";
import { quoted } from "./config.js";

const WHOLE = ["head_dim", "kv_heads", "width_multiple", "depth", "width", "tensor_parallel", "pipeline_stages", "data_parallel", "zero", "batch"];
const REAL = ["ff_ratio", "layer_us"];
const FLAGS = { kind: { total: "--total", flops: "--flops", memory: "--memory" }, tied: { true: "--tied", false: "--untied" }, at_most: { true: "--at-most" } };

// Settings as texts
export function toTexts(settings) {
  const text = (name, value) => (value === null || (value === false && name !== "tied") ? "" : String(value));
  return Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, text(name, value)]));
}

const noun = (name) => name.replaceAll("_", " ");

// Settings for the planner: null where a text is empty and the default is none
export function parseSettings(raw, constants) {
  const settings = {};
  for (const [name, usual] of Object.entries(constants.defaults)) {
    const text = raw[name].trim();
    const choices = constants.choices[name];
    if (text === "") settings[name] = usual;
    else if (choices && !choices.includes(text)) throw new Refusal(`${noun(name)} must be one of ${choices.join(", ")}, not ${quoted(text)}.`);
    else if (WHOLE.includes(name)) {
      if (!/^\d{1,15}$/.test(text)) throw new Refusal(`${noun(name)} must be a whole number, not ${quoted(text)}.`);
      settings[name] = Number(text);
    } else if (REAL.includes(name)) {
      if (!/^\d*\.?\d+(e[+-]?\d+)?$|^\d+\.$/i.test(text)) throw new Refusal(`${noun(name)} must be a number, not ${quoted(text)}.`);
      settings[name] = Number(text);
    } else if (name === "tied" || name === "at_most") settings[name] = text === "true";
    else settings[name] = text;
  }
  if (settings.budget === null) throw new Refusal("give a budget, such as 1.3B.");
  return settings;
}

export function toFragment(raw, usual) {
  const pairs = Object.keys(usual).filter((name) => raw[name].trim() !== usual[name] && raw[name].trim() !== "");
  return pairs.map((name) => `${name}=${encodeURIComponent(raw[name].trim()).replaceAll("%2F", "/")}`).join("&");
}

// {raw, unknown}: the texts that an address gives, and the names in it that are no settings
export function fromFragment(fragment, usual) {
  const raw = { ...usual };
  const unknown = [];
  for (const [name, value] of new URLSearchParams(fragment.replace(/^#/, "").replaceAll("+", "%2B"))) {
    if (Object.hasOwn(usual, name)) raw[name] = value.slice(0, 200);
    else unknown.push(name);
  }
  return { raw, unknown };
}

const shellWord = (text) => (/^[\w.,:/@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

// The command that makes the same plan; `save` is a file for its config
export function toCommand(raw, usual, laws, save = "") {
  const words = ["deepwide", "plan", shellWord((raw.budget.trim() || usual.budget))];
  for (const name of Object.keys(usual)) {
    const text = raw[name].trim();
    if (name === "budget" || text === "" || text === usual[name]) continue;
    if (FLAGS[name]) words.push(FLAGS[name][text] ?? "");
    else {
      const law = name === "law" ? laws.named(text) : null;
      words.push(`--${name.replaceAll("_", "-")}`, shellWord(law?.file ?? text));
    }
  }
  if (save) words.push("--save", save);
  return words.filter((word) => word).join(" ");
}
