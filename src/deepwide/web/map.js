// The depth–width map, both axes logarithmic, drawn in SVG by hand: a drag redraws only the plan, not the ground.
// Legend: N block parameters, L depth, d equivalent width, √(N / 12·L): equal sizes are straight lines.
import { fixed, grouped, showCount } from "./numbers.js";

const SVG = "http://www.w3.org/2000/svg";
const USUAL = { x: [100, 200_000], y: [2, 300] };
const MARGIN = { top: 10, right: 18, bottom: 44, left: 46 };
const MATRICES = 12;
const SIZES_OF_TEXT = { "plan-label": "600 13px", "model-label": "11px", chosen: "600 12px" }; // as in page.css

const LINE = 3; // covering the line of the budget counts as so many points

export const equivalentWidth = (N, L) => Math.sqrt(N / (MATRICES * L));

// The usual span, doubled until it holds all values with room around them: by steps, so that a drag seldom moves the ground
function stretched([low, high], values) {
  const doublings = (ratio) => 2 ** Math.max(0, Math.ceil(Math.log2(ratio)));
  return [low / doublings(low / (Math.min(...values, low * 2) / 1.4)), high * doublings((Math.max(...values, high / 2) * 1.4) / high)];
}

const dashOf = (law, chosen) => (law === chosen ? "none" : law.dash);

// Whether a line, a function from y to x, runs through a box
function crosses(line, [left, top, right, bottom]) {
  const [one, other] = [line(top), line(bottom)];
  return Math.min(one, other) < right + 3 && Math.max(one, other) > left - 3;
}

function element(name, attributes = {}, text = "") {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text) node.textContent = text;
  return node;
}

// Round numbers for a logarithmic axis, as the figures have them
function ticks([low, high], room) {
  const decades = Math.log10(high / low);
  const steps = room / decades > 150 ? [1, 2, 5] : room / decades > 95 ? [1, 3] : [1];
  const values = [];
  for (let power = 0; power < 16; power++) for (const step of steps) values.push(step * 10 ** power);
  return values.filter((value) => low <= value && value <= high);
}

export class DepthWidthMap {
  constructor(box, laws, models) {
    Object.assign(this, { box, laws, models: models.filter((model) => model.dense), span: USUAL, law: null, audit: null });
    this.pen = document.createElement("canvas").getContext("2d");
    this.fontFamily = getComputedStyle(box).fontFamily;
    this.widths = new Map(); // of texts, in pixels: measuring each one in each frame would be slow
    // Two pictures, one upon the other: a drag paints only the upper one again.
    this.ground = element("svg", { class: "ground", "aria-hidden": "true" });
    this.front = element("svg", { class: "front", "aria-hidden": "true" });
    box.append(this.ground, this.front);
    this.resize();
  }

  resize() {
    const { width, height } = this.box.getBoundingClientRect();
    this.width = Math.max(280, Math.round(width));
    this.height = Math.max(280, Math.round(height));
    for (const svg of [this.ground, this.front]) svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.law = null; // the ground must be drawn again
  }

  X(d) {
    const [low, high] = this.span.x;
    return MARGIN.left + (Math.log(d / low) / Math.log(high / low)) * (this.width - MARGIN.left - MARGIN.right);
  }

  Y(L) {
    const [low, high] = this.span.y;
    return this.height - MARGIN.bottom - (Math.log(L / low) / Math.log(high / low)) * (this.height - MARGIN.top - MARGIN.bottom);
  }

  // The size and the depth at a place in pixels; null outside the frame
  at(x, y) {
    const across = (x - MARGIN.left) / (this.width - MARGIN.left - MARGIN.right);
    const up = (this.height - MARGIN.bottom - y) / (this.height - MARGIN.top - MARGIN.bottom);
    if (across < 0 || across > 1 || up < 0 || up > 1) return null;
    const d = this.span.x[0] * (this.span.x[1] / this.span.x[0]) ** across;
    const L = this.span.y[0] * (this.span.y[1] / this.span.y[0]) ** up;
    return { N: MATRICES * L * d * d, L };
  }

  isInside = (x, y) => x >= MARGIN.left && x <= this.width - MARGIN.right && y >= MARGIN.top && y <= this.height - MARGIN.bottom;

  // The model whose point is nearest to a place, within a finger's width
  modelAt(x, y) {
    let best = null;
    for (const model of this.models) {
      const far = Math.hypot(this.X(equivalentWidth(model.block, model.depth)) - x, this.Y(model.depth) - y);
      if (far < (best?.far ?? 14)) best = { model, far };
    }
    return best?.model ?? null;
  }

  draw(plan, law, audit) {
    const points = [...(plan?.candidates ?? []).map((c) => [Number(c.block), c.depth]), ...(audit ? [[audit.N, audit.shape.depth]] : [])];
    const span = {
      x: stretched(USUAL.x, points.map(([N, L]) => equivalentWidth(N, L))),
      y: stretched(USUAL.y, points.map(([, L]) => L)),
    };
    if (law !== this.law || JSON.stringify(span) !== JSON.stringify(this.span)) {
      this.span = span;
      this.law = law;
      this.drawGround(law);
    }
    this.drawFront(plan, law, audit);
  }

  drawGround(law) {
    const parts = [];
    const add = (name, attributes, text) => parts.push(element(name, attributes, text));
    this.taken = [];
    this.sizeLabels = [];
    this.points = []; // what labels should not cover: dots, and points along the lines
    const [left, right, top, bottom] = [MARGIN.left, this.width - MARGIN.right, MARGIN.top, this.height - MARGIN.bottom];
    const clip = element("clipPath", { id: "frame" });
    clip.append(element("rect", { x: left, y: top, width: right - left, height: bottom - top }));
    parts.push(clip);
    for (const value of ticks(this.span.x, right - left)) {
      add("line", { class: "tick", x1: this.X(value), x2: this.X(value), y1: bottom, y2: bottom + 4 });
      const shown = value >= 10_000 ? `${value / 1000}k` : grouped(value);
      add("text", { class: "tick-label", x: this.X(value), y: bottom + 16, "text-anchor": "middle" }, shown);
    }
    for (const value of ticks(this.span.y, 2.2 * (bottom - top))) {
      add("line", { class: "tick", x1: left - 4, x2: left, y1: this.Y(value), y2: this.Y(value) });
      add("text", { class: "tick-label", x: left - 7, y: this.Y(value) + 4, "text-anchor": "end" }, grouped(value));
    }
    const wide = right - left > 420;
    add("text", { class: "axis-title", x: (left + right) / 2, y: bottom + 36, "text-anchor": "middle" },
      wide ? "equivalent width √(N / 12·depth), N block parameters" : "equivalent width √(N / 12·depth)");
    const middle = (top + bottom) / 2;
    add("text", { class: "axis-title", x: 12, y: middle, "text-anchor": "middle", transform: `rotate(-90 12 ${middle})` }, "depth (layers)");
    const sizes = Array.from({ length: 240 }, (_, i) => 10 ** (3 + (15 * i) / 239));
    const within = element("g", { "clip-path": "url(#frame)" });
    const curve = (of, owner = null) => {
      const path = sizes.map((N) => [N, of(N)]).filter(([, L]) => L >= 0.5 && L < 1e5);
      return path.map(([N, L]) => {
        const [x, y] = [this.X(equivalentWidth(N, L)), this.Y(L)];
        if (owner) this.points.push({ x, y, of: owner });
        return `${x.toFixed(1)} ${y.toFixed(1)}`;
      });
    };
    const band = (low, high, name) => within.append(element("path", { class: `${name} ${law.mark}`, d: `M${[...curve(low), ...curve(high).reverse()].join("L")}Z` }));
    if (!law.own_bowl) band((N) => this.laws.measuredOptimum(N).low, (N) => this.laws.measuredOptimum(N).high, "band data");
    if (!Number.isNaN(this.laws.depths(law, 1e9)[1])) band((N) => Math.max(this.laws.depths(law, N)[1], 0.51), (N) => this.laws.depths(law, N)[2], "band law");
    for (let power = 3; power < 19; power++) {
      const N = 10 ** power;
      const [from, to] = [this.span.y[0], this.span.y[1]].map((L) => [this.X(equivalentWidth(N, L)), this.Y(L)]);
      within.append(element("line", { class: "equal", x1: from[0], y1: from[1], x2: to[0], y2: to[1] }));
    }
    const threshold = Array.from({ length: 40 }, (_, i) => this.span.x[0] * (this.span.x[1] / this.span.x[0]) ** (i / 39));
    const along = threshold.map((d) => ({ x: this.X(d), y: this.Y(Math.max(Math.log(d) / Math.log(3), 0.1)), of: "threshold" }));
    this.points.push(...along);
    within.append(element("path", { class: "threshold", d: `M${along.map(({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}` }));
    for (const other of this.laws.rivals(law).filter((each) => each.predicts).reverse()) {
      const d = `M${curve((N) => this.laws.depthAt(other, N), other).join("L")}`;
      within.append(element("path", { class: `curve ${other.mark}${other === law ? " chosen" : ""}`, d, "stroke-dasharray": dashOf(other, law) }));
    }
    for (const model of this.models) {
      const [x, y] = [this.X(equivalentWidth(model.block, model.depth)), this.Y(model.depth)];
      this.points.push({ x, y, of: model });
      within.append(element("circle", { class: "model", cx: x.toFixed(1), cy: y.toFixed(1), r: 2.6 }));
    }
    parts.push(within);
    for (let power = 3; power < 19; power++) { // after the curves, so that none runs through them
      const N = 10 ** power;
      const places = [1.12, 1.4, 1.7].map((times) => this.span.y[0] * times).concat([4.5, 7, 10, 15, 24, 40]).map((L) => [this.X(equivalentWidth(N, L)) + 4, this.Y(L), "start"]);
      const placed = this.label(parts, showCount(N), places, "equal-label");
      if (placed) this.sizeLabels.push(placed);
    }
    add("rect", { class: "frame", x: left, y: top, width: right - left, height: bottom - top });
    const word = wide ? "theory's threshold: depth = log₃ width" : "theory: log₃ width";
    const beside = along.filter((_, i) => i % 2 === 0).reverse().flatMap(({ x, y }) => [[x, y + 14, "start"], [x, y - 6, "end"]]);
    this.lineLabels = [this.ranked(word, beside, "threshold-label", { own: "threshold", most: 2 }), ...this.laws.rivals(law).filter((each) => each.predicts).map((other) => this.curveLabel(other, law))];
    this.ground.replaceChildren(...parts);
    this.groundTaken = this.taken;
  }

  // A law's name beside its curve
  curveLabel(law, chosen) {
    const places = [];
    for (let i = 0; i < 60; i++) {
      const N = 10 ** (14.6 - i * 0.12);
      const L = this.laws.depthAt(law, N);
      const [x, y] = [this.X(equivalentWidth(N, L)), this.Y(L)];
      if (this.isInside(x, y)) places.push([x - 6, y - 7, "end"], [x + 8, y + 14, "start"]);
    }
    const text = law === chosen ? `${law.key} law` : law.key;
    const name = `curve-label ${law.mark}${law === chosen ? " chosen" : ""}`;
    return this.ranked(text, places, name, { own: law, most: law === chosen ? 99 : 2 });
  }

  // A label with the places that cover least of the ground, the best first: what lies in front decides which are free
  ranked(text, places, name, limits) {
    const free = places.map((place) => ({ place, at: this.fit(text, [place], name, limits) })).filter(({ at }) => at);
    free.sort((one, other) => one.at.covered - other.at.covered);
    return [text, free.slice(0, 24).map(({ place }) => place), name, limits];
  }

  // Where a text meets no other text and no point of the plan, and of such places where it covers least of the rest; null
  // where there is no such place, or only places that cover too much
  fit(text, places, name, { avoid = [], most = 99, own = null, line = null } = {}) {
    const long = this.textWidth(text, name);
    let best = null;
    for (const [x, y, anchor] of places) {
      const start = anchor === "end" ? x - long : anchor === "middle" ? x - long / 2 : x;
      const box = [start - 1, y - 11, start + long + 1, y + 4];
      if (!this.isInside(box[0], box[1]) || !this.isInside(box[2], box[3])) continue;
      const meets = (other) => box[0] <= other[2] && box[2] >= other[0] && box[1] <= other[3] && box[3] >= other[1];
      if (this.taken.some(meets) || avoid.some(meets)) continue;
      let covered = line && crosses(line, box) ? LINE : 0;
      for (const point of this.points) {
        if (point.of !== own && point.x > box[0] - 3 && point.x < box[2] + 3 && point.y > box[1] - 2 && point.y < box[3] + 2) covered += 1;
      }
      if (covered <= most && covered < (best?.covered ?? Infinity)) best = { x, y, anchor, box, covered };
      if (covered === 0) break;
    }
    return best;
  }

  // Adds a text where it fits; the node and its box, or null
  label(parts, text, places, name, limits) {
    const best = this.fit(text, places, name, limits);
    if (!best) return null;
    this.taken.push(best.box);
    const node = element("text", { class: name, x: best.x.toFixed(1), y: best.y.toFixed(1), "text-anchor": best.anchor }, text);
    parts.push(node);
    return { node, box: best.box };
  }

  textWidth(text, name) {
    const size = name.split(" ").map((each) => SIZES_OF_TEXT[each]).find((each) => each) ?? "12px";
    const key = `${size} ${text}`;
    if (!this.widths.has(key)) {
      if (this.widths.size > 5000) this.widths.clear();
      this.pen.font = `${size} ${this.fontFamily}`;
      this.widths.set(key, this.pen.measureText(text).width + 2);
    }
    return this.widths.get(key);
  }

  // A short piece of a law's line, for a legend
  swatch() {
    const svg = element("svg", { width: 30, height: 8, "aria-hidden": "true" });
    svg.append(element("line", { x1: 0, x2: 30, y1: 4, y2: 4 }));
    return svg;
  }

  drawSwatch(svg, law, chosen) {
    svg.firstElementChild.setAttribute("class", `curve ${law.mark}${law === chosen ? " chosen" : ""}`);
    svg.firstElementChild.setAttribute("stroke-dasharray", dashOf(law, chosen));
  }

  around = (x, y) => [
    [x + 9, y - 7, "start"], [x - 9, y - 7, "end"], [x + 9, y + 15, "start"], [x - 9, y + 15, "end"],
    [x + 12, y + 4, "start"], [x - 12, y + 4, "end"], [x + 14, y - 18, "start"], [x - 14, y - 18, "end"],
    [x + 14, y + 26, "start"], [x - 14, y + 26, "end"],
  ];

  drawFront(plan, law, audit) {
    const parts = [];
    this.taken = [...this.groundTaken];
    const within = element("g", { "clip-path": "url(#frame)" });
    parts.push(within);
    const spots = [];
    const spot = (N, L) => {
      const place = [this.X(equivalentWidth(N, L)), this.Y(L)];
      spots.push([place[0] - 7, place[1] - 7, place[0] + 7, place[1] + 7]);
      return place;
    };
    const labels = [];
    let line = null;
    if (plan) {
      const N = plan.law_params;
      const [[x1, y1], [x2, y2]] = this.span.y.map((L) => [this.X(equivalentWidth(N, L)), this.Y(L)]);
      line = (y) => x1 + ((y - y1) / (y2 - y1)) * (x2 - x1);
      within.append(element("path", { class: "budget", d: `M${x1.toFixed(1)} ${y1.toFixed(1)}L${x2.toFixed(1)} ${y2.toFixed(1)}` }));
      const size = showCount(N);
      const places = Array.from({ length: 12 }, (_, i) => this.span.y[1] * 0.93 * 0.86 ** i).map((L) => [this.X(equivalentWidth(N, L)) + 6, this.Y(L), "start"]);
      labels.push([`N = ${size}`, places, "budget-label"]);
      for (const model of plan.nearest) {
        const [x, y] = spot(model.block, model.depth);
        within.append(element("circle", { class: "model near", cx: x.toFixed(1), cy: y.toFixed(1), r: 3.6 }));
        labels.push([model.name, this.around(x, y), "model-label", { own: model, line, most: 5 }]);
      }
      for (const c of plan.candidates) {
        const [x, y] = spot(Number(c.block), c.depth);
        const chosen = c.depth === plan.shape.depth;
        within.append(element("circle", { class: chosen ? "plan" : "candidate", cx: x.toFixed(1), cy: y.toFixed(1), r: chosen ? 6.5 : 4.5 }));
        if (chosen) labels.unshift([`${c.depth} × ${grouped(c.width)}`, this.around(x, y), "plan-label", { line }]);
      }
    }
    if (audit) {
      const [x, y] = spot(audit.N, audit.shape.depth);
      const size = 7;
      const diamond = `M${x} ${y - size}L${x + size} ${y}L${x} ${y + size}L${x - size} ${y}Z`;
      within.append(element("path", { class: `audited ${audit.outcome.replace(" ", "-")}`, d: diamond }));
      const name = audit.name.length > 24 ? `${audit.name.slice(0, 23)}…` : audit.name;
      labels.splice(1, 0, [`${name}: ${audit.outcome}`, this.around(x, y), "plan-label"]);
    }
    const models = labels.findIndex(([, , name]) => name === "model-label");
    labels.splice(models < 0 ? labels.length : models, 0, ...this.lineLabels.map(([text, places, name, limits]) => [text, places, name, { ...limits, line }]));
    for (const [text, places, name, limits] of labels) this.label(parts, text, places, name, { avoid: spots, ...limits });
    for (const { node, box } of this.sizeLabels) node.classList.toggle("covered", line !== null && crosses(line, box));
    this.front.replaceChildren(...parts);
  }
}

// A public model in one line
export function modelLine(model, laws, law) {
  const ratio = fixed(model.depth / laws.depthAt(law, model.block), 2);
  return `${model.name}: ${model.depth} × ${grouped(model.width)}, ${showCount(model.block)} ${model.dense ? "" : "active "}block parameters, ${ratio}× the depth of the ${law.name} law`;
}
