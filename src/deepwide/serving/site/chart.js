// A chart of lines and dots in SVG, with logarithmic axes where asked; pointing at a dot or a line tells its values.
import { general, make, setText, showCount } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = { top: 12, right: 16, bottom: 42, left: 64 };
const DASHES = ["", "6 3", "2 3", "9 3 2 3"];
export const CATEGORIES = 8;
const RAMP = 5;

function element(name, attributes = {}, text = "") {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text) node.textContent = text;
  return node;
}

// symlog is a logarithm that lets values come down to zero
const FORWARD = { linear: (x) => x, log: Math.log, symlog: (x) => Math.sign(x) * Math.log1p(Math.abs(x)) };

function ticks(kind, low, high, room) {
  if (kind === "linear") {
    const wanted = Math.max(2, Math.floor(room / 70));
    const rough = (high - low) / wanted;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
    const values = [];
    for (let value = Math.ceil(low / step) * step; value <= high + 1e-9 * step; value += step) values.push(value);
    return values;
  }
  const all = kind === "symlog" ? [0] : [];
  const least = kind === "symlog" ? 1 : 0; // below that a symlog axis is nearly linear, and labels would meet
  const decades = Math.log10(Math.max(high, 1e-300) / Math.max(low, kind === "symlog" ? 1 : 1e-300));
  const steps = room / decades > 160 ? [1, 2, 3, 5, 7] : room / decades > 90 ? [1, 2, 5] : room / decades > 45 ? [1, 3] : [1];
  const stride = Math.max(1, Math.ceil((decades * 40) / room));
  for (let power = -12; power < 40; power++) {
    if (power % stride) continue;
    for (const step of steps) all.push(step * 10 ** power);
  }
  const inside = all.filter((value) => value >= low && value <= high && (value === 0 || value >= least));
  return inside.length > 1 ? inside : ticks("linear", low, high, room); // a small part of a decade
}

export class Chart {
  // axes: {title, kind, show}; `told` is the element that says what is pointed at, `keys` the list of the lines' names
  constructor(box, { x, y, told = null, keys = null }) {
    Object.assign(this, { box, x: { kind: "linear", ...x }, y: { kind: "linear", ...y }, told, keys, series: [], rules: [] });
    this.svg = element("svg", { "aria-hidden": "true" });
    box.append(this.svg);
    box.addEventListener("pointermove", (event) => this.point(event));
    new ResizeObserver(() => this.render()).observe(box);
  }

  // series: {name, colour (number of a category) or shade (0 to 1, of what has an order), points [[x, y, text]], line, dots, hollow, dash}
  draw(series, rules = []) {
    this.series = series.filter((each) => each.points.length);
    this.rules = rules;
    this.render();
  }

  render() {
    const { width, height } = this.box.getBoundingClientRect();
    if (width < 40) return;
    this.svg.replaceChildren();
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.places = [];
    if (!this.series.length) {
      this.svg.append(element("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, "nothing to draw yet"));
      this.keys?.replaceChildren();
      return;
    }
    const spans = ["x", "y"].map((axis, i) => this.span(this[axis].kind, this.series.flatMap((each) => each.points.map((point) => point[i]))));
    const place = [0, 1].map((i) => {
      const kind = this[i ? "y" : "x"].kind;
      const [low, high] = spans[i].map(FORWARD[kind]);
      const [from, to] = i ? [height - MARGIN.bottom, MARGIN.top] : [MARGIN.left, width - MARGIN.right];
      return (value) => from + ((FORWARD[kind](value) - low) / (high - low || 1)) * (to - from);
    });
    this.axes(spans, place, width, height);
    for (const { x, label } of this.rules) {
      if (x < spans[0][0] || x > spans[0][1]) continue;
      const at = place[0](x);
      this.svg.append(element("line", { class: "rule", x1: at, x2: at, y1: MARGIN.top, y2: height - MARGIN.bottom }));
    }
    for (const each of this.series) this.drawSeries(each, place);
    for (const { x, label } of this.rules) {
      if (x < spans[0][0] || x > spans[0][1]) continue;
      const left = place[0](x) > width * 0.6;
      this.svg.append(element("text", { class: "over", x: place[0](x) + (left ? -5 : 5), y: MARGIN.top + 10, "text-anchor": left ? "end" : "start" }, label));
    }
    this.mark = element("circle", { class: "pointed", r: 7, visibility: "hidden" });
    this.svg.append(this.mark);
    this.showKeys();
  }

  span(kind, values) {
    let low = Math.min(...values);
    let high = Math.max(...values);
    if (kind === "log") return low === high ? [low / 1.5, high * 1.5] : [low / 1.06, high * 1.06];
    if (kind === "symlog") return [Math.min(0, low), high * 1.1 || 1];
    const room = (high - low) * 0.04 || Math.abs(high) * 0.1 || 1;
    low -= room;
    high += room;
    return [low, high];
  }

  axes(spans, place, width, height) {
    const show = (axis, value) => (axis.show ?? ((number) => general(number, 3)))(value);
    let last = -Infinity;
    for (const value of ticks(this.x.kind, ...spans[0], width - MARGIN.left - MARGIN.right)) {
      const at = place[0](value);
      const text = show(this.x, value);
      if (this.x.whole && !Number.isInteger(value)) continue;
      this.svg.append(element("line", { class: "grid-line", x1: at, x2: at, y1: MARGIN.top, y2: height - MARGIN.bottom }));
      if (at - last < 8 * text.length) continue;
      last = at + 4;
      this.svg.append(element("text", { x: at, y: height - MARGIN.bottom + 15, "text-anchor": "middle" }, text));
    }
    let above = Infinity;
    for (const value of ticks(this.y.kind, ...spans[1], height - MARGIN.top - MARGIN.bottom)) {
      const at = place[1](value);
      this.svg.append(element("line", { class: "grid-line", x1: MARGIN.left, x2: width - MARGIN.right, y1: at, y2: at }));
      if (Math.abs(at - above) < 14) continue;
      above = at;
      this.svg.append(element("text", { x: MARGIN.left - 7, y: at + 4, "text-anchor": "end" }, show(this.y, value)));
    }
    this.svg.append(element("text", { x: (MARGIN.left + width - MARGIN.right) / 2, y: height - 6, "text-anchor": "middle" }, this.x.title));
    const middle = (MARGIN.top + height - MARGIN.bottom) / 2;
    this.svg.append(element("text", { x: 13, y: middle, "text-anchor": "middle", transform: `rotate(-90 13 ${middle})` }, this.y.title));
  }

  drawSeries(each, place) {
    const group = element("g");
    group.style.setProperty("--series", colourOf(each));
    const at = each.points.map(([x, y]) => [place[0](x), place[1](y)]);
    if (each.line !== false && at.length > 1) {
      group.append(element("path", { class: "line", d: `M${at.map((spot) => spot.map((v) => v.toFixed(1)).join(",")).join("L")}`, "stroke-dasharray": dashOf(each) }));
    }
    if (each.dots || at.length === 1) {
      for (const [x, y] of at) group.append(element("circle", { class: `dot${each.hollow ? " hollow" : ""}`, cx: x.toFixed(1), cy: y.toFixed(1), r: each.hollow ? 4.5 : 3.4 }));
    }
    this.svg.append(group);
    each.points.forEach(([x, y, text], i) => this.places.push({ at: at[i], text: text ?? `${each.name}: ${this.told_(x, y)}` }));
  }

  told_(x, y) {
    return `${this.x.title} ${(this.x.show ?? showCount)(x)}, ${this.y.title} ${general(y, 4)}`;
  }

  showKeys() {
    this.keys?.replaceChildren(...this.series.filter((each) => each.name && !each.unnamed).map((each) => {
      const item = make("li");
      item.style.setProperty("--series", colourOf(each));
      const swatch = element("svg", { viewBox: "0 0 26 12", "aria-hidden": "true" });
      if (each.line !== false) swatch.append(element("path", { class: "line", d: "M0,6L26,6", "stroke-dasharray": dashOf(each) }));
      if (each.dots) swatch.append(element("circle", { class: `dot${each.hollow ? " hollow" : ""}`, cx: 13, cy: 6, r: 3.4 }));
      item.append(swatch, each.name);
      return item;
    }));
  }

  point(event) {
    if (!this.places?.length) return;
    const frame = this.box.getBoundingClientRect();
    const [x, y] = [event.clientX - frame.left, event.clientY - frame.top];
    let best = null;
    let distance = 40 ** 2;
    for (const place of this.places) {
      const away = (place.at[0] - x) ** 2 + (place.at[1] - y) ** 2;
      if (away < distance) [best, distance] = [place, away];
    }
    this.mark.setAttribute("visibility", best ? "visible" : "hidden");
    if (best) {
      this.mark.setAttribute("cx", best.at[0]);
      this.mark.setAttribute("cy", best.at[1]);
    }
    if (this.told) setText(this.told, best ? best.text : "");
  }
}

const dashOf = ({ dash, colour }) => dash ?? DASHES[Math.floor((colour ?? 0) / CATEGORIES) % DASHES.length];
// As figures/style.py mixes its ramp
function colourOf({ colour, shade }) {
  if (shade === undefined) return `var(--category-${(colour ?? 0) % CATEGORIES})`;
  const low = Math.min(Math.floor(shade * (RAMP - 1)), RAMP - 2);
  return `color-mix(in srgb, var(--ramp-${low + 1}) ${100 * (shade * (RAMP - 1) - low)}%, var(--ramp-${low}))`;
}
