// What the pages share: elements made of text, questions to the server, its live streams.
import { fixed, general, grouped, showBytes, showCount } from "./numbers.js";

export const by = (id) => document.getElementById(id);

// An element with attributes and children; texts are set as text, never as HTML
export function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null && value !== false) node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined).map((child) => (child instanceof Node ? child : String(child))));
  return node;
}

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export class Refused extends Error {}

// The server's answer, or a Refused with its sentence; `read` may be another reader of JSON
export async function ask(path, options = {}, read = JSON.parse) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("The server does not answer: is it still running?");
  }
  const text = await response.text();
  if (response.ok) return read(text);
  let sentence = `The server answered ${response.status}.`;
  try {
    sentence = JSON.parse(text).error ?? sentence;
  } catch { /* not ours: keep the number */ }
  throw new Refused(sentence);
}

// A live stream while the page is in sight: a browser has few connections, and hidden tabs need none
export function listen(path, handlers, status) {
  let source = null;
  const close = () => {
    source?.close();
    source = null;
  };
  const open = () => {
    if (source || document.hidden) return;
    source = new EventSource(path);
    source.addEventListener("open", () => setText(status, "live"));
    source.addEventListener("error", () => setText(status, "not connected; trying again"));
    for (const [kind, handle] of Object.entries(handlers)) source.addEventListener(kind, (event) => handle(JSON.parse(event.data)));
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  open();
  return close;
}

export function facts(container, pairs) {
  container.replaceChildren(...pairs.filter(([, value]) => value !== null && value !== "").map(([label, value]) => make("div", {}, make("dt", {}, label), make("dd", {}, value))));
}

export function notes(container, texts) {
  container.replaceChildren(...texts.map((text) => make("li", {}, text)));
}

export function tableOf(columns, rows) {
  const head = make("tr", {}, ...columns.map(({ title, text }) => make("th", { scope: "col", class: text ? "text" : undefined }, title)));
  const body = rows.map((row) => make("tr", {}, ...columns.map(({ key, text, show }, i) => {
    const value = show ? show(row) : row[key];
    const cell = make(i === 0 ? "th" : "td", { class: text ? "text" : undefined, scope: i === 0 ? "row" : undefined });
    cell.append(value instanceof Node ? value : value === null || value === undefined ? "" : String(value));
    return cell;
  })));
  return make("table", { class: "plain" }, make("thead", {}, head), make("tbody", {}, ...body));
}

export function showSeconds(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 1) return `${fixed(seconds, 2)} s`;
  if (seconds < 90) return `${fixed(seconds, seconds < 10 ? 1 : 0)} s`;
  if (seconds < 5400) return `${fixed(seconds / 60, 0)} min`;
  if (seconds < 172800) return `${fixed(seconds / 3600, 1)} h`;
  return `${fixed(seconds / 86400, 1)} days`;
}

export function showInterval(interval, digits = 3) {
  if (!interval) return "";
  const [value, low, high] = [interval.value, interval.low, interval.high].map((x) => (x === null || x === undefined ? null : general(x, digits)));
  return low === null || high === null ? value : `${value} (95%: ${low} to ${high})`;
}

export const state = (word) => make("span", { class: `state ${word.replaceAll(" ", "-")}` }, word);
export const debounce = (action, ms) => {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, ms);
  };
};
export { fixed, general, grouped, showBytes, showCount };
