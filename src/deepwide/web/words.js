// A plan and an audit in words, as the command line prints them: the planner's English from the planner's numbers.
// Everything the page shows as text comes from here, so that one test compares all of it with `deepwide plan`.
import { fixed, general, grouped, plural, rint, showBytes, showCount, signed, signedPercent } from "./numbers.js";
import { idealHeadDim, widthStep } from "./planner.js";
import { cacheElements, exact } from "./shape.js";

export const NO_DATA = "no data";

export function percent(interval) {
  if (interval === null || interval.low === null) return NO_DATA;
  return `${signed(interval.value, 2)}% (${signed(interval.low, 2)} to ${signed(interval.high, 2)})`;
}

export function span(interval, digits = 1, of = "95%: ") {
  const text = fixed(interval.value, digits);
  return interval.low === null ? text : `${text} (${of}${fixed(interval.low, digits)} to ${fixed(interval.high, digits)})`;
}

const withoutLimit = (depth, { deepest, far_above }) => depth.high !== null && depth.high > Math.max(deepest, far_above * depth.value);

// As span; an upper limit that no network has is none
export function depthSpan(depth, noLimit, of = "95%: ") {
  return withoutLimit(depth, noLimit) ? `${fixed(depth.value, 1)} (${of}${fixed(depth.low, 1)} to no upper limit)` : span(depth, 1, of);
}

const headsOf = (s) => `${plural(s.heads, "head")}${s.kv_heads === s.heads ? "" : ` (${s.kv_heads} key/value)`} of ${s.head_dim}`;

export function describe(s) {
  const parts = [];
  const shared = s.experts?.shared ? ` + ${s.experts.shared} shared` : "";
  if (s.experts) parts.push(`${s.experts.experts}${shared} ${s.ff} experts of ${grouped(s.experts.width)} (${s.experts.active} active)`);
  if (!s.experts || s.experts.dense_layers.length) parts.push(`${s.ff} feed-forward of ${grouped(s.ff_width)}`);
  return `${plural(s.depth, "layer")} × ${grouped(s.width)} wide, ${headsOf(s)}, ${parts.join(", ")}, ` +
    `vocabulary ${grouped(s.vocab)}, context ${grouped(s.context)}`;
}

export const describeBriefly = (s) => `${s.depth} × ${grouped(s.width)}, ${headsOf(s)}, feed-forward of ${grouped(s.ff_width)}`;

// What the fit of a law warned about, and whether the law is asked beyond its data
export function lawNotes(law, laws, N) {
  const notes = law.cautions.map((caution) => ({ code: "law-caution", text: `the ${law.name} law: ${caution}` }));
  if (laws.isExtrapolated(law, N)) {
    const [low, high] = law.fitted_block_params;
    const factor = N > high ? N / high : low / N;
    const shown = factor >= 10 ? grouped(fixed(factor, 0)) : general(factor, 2);
    const text = `the ${law.name} law is extrapolated by a factor ${shown}: ${laws.fittedWords(law)} block parameters`;
    notes.push({ code: "law-extrapolated", text });
  }
  return notes;
}

function planNotes(plan, laws, prices) {
  const { style, budget, law, shape, law_depth: lawDepth } = plan;
  const N = Number(plan.params.block);
  const notes = [];
  const note = (code, text) => notes.push({ code, text });
  if (plan.fewer_layers !== null) note("fewer-layers", fewerLayers(plan));
  if (plan.search !== null) note("budget-missed", missed(plan, prices));
  note("cost-source", costSource(law, laws, shape, N, prices.cost_source));
  notes.push(...lawNotes(law, laws, N));
  const outside = lawDepth.low !== null && !(lawDepth.low <= shape.depth && shape.depth <= (lawDepth.high || Infinity));
  if (plan.fixed === null && outside && Number(fixed(lawDepth.value, 0)) !== shape.depth) {
    note("depth-pushed", `the constraints push the depth to ${shape.depth}, outside the ${law.name} law's interval`);
  }
  const usual = idealHeadDim(shape.width, prices);
  if (style.head_dim === null && shape.head_dim !== usual) {
    const isTiny = shape.head_dim < prices.least_heads && shape.width >= prices.small_width && plan.fixed === null;
    note("head-width", `heads are ${shape.head_dim} wide instead of the usual ${usual} at this width: ${whyHeads(plan, usual)}${isTiny ? whyTinyHeads(plan, prices) : ""}`);
  }
  const tiny = plan.candidates.filter((c) => c.shape.head_dim < prices.least_heads && c.width >= prices.small_width && c.depth !== shape.depth);
  if (style.head_dim === null && tiny.length) {
    note("narrow-heads-at-other-depths", `at other depths (${tiny.map((c) => c.depth).join(", ")}) heads are narrower than ${prices.least_heads} ` +
      "because no wider ones that divide as asked come as near to the size");
  }
  const over = plan.candidates.filter((c) => c.budget_share > 1 + prices.close && c.depth !== shape.depth);
  if (["memory", "flops"].includes(budget.kind) && over.length) {
    const each = over.map((c) => `${plural(c.depth, "layer")} ${fixed(c.budget_share, 2)} times`).join(", ");
    note("depths-over-budget", `at this size other depths take more than the budget: ${each}`);
  }
  const devices = style.tensor_parallel;
  if (style.kv_heads && style.kv_heads % devices) {
    const uneven = devices % style.kv_heads ? ", unevenly, and memory per device is not counted" : "";
    note("kv-heads-replicated", `${style.kv_heads} key/value heads do not divide over ${devices} devices: they will be replicated${uneven}`);
  }
  if (devices > 1 && shape.vocab % devices) {
    note("vocabulary-indivisible", `the vocabulary ${grouped(shape.vocab)} does not divide over ${devices} devices: pad it`);
  }
  if (budget.kind === "memory") {
    note("memory-without-activations", "the memory is that of all devices together and holds weights and cache only: " +
      "leave room for activations and the runtime");
  }
  if (shape.width > shape.vocab) {
    note("wasted-width", `width ${grouped(shape.width)} is beyond the vocabulary ${grouped(shape.vocab)}: wasted, according to Wies et al. 2021`);
  }
  if (plan.zero && plan.data_parallel <= 1) {
    note("zero-without-copies", `ZeRO ${plan.zero} shares what data-parallel copies would each hold, and there is one copy, so it changes nothing: ` +
      "say how many data-parallel copies there are");
  }
  return notes;
}

function whyHeads({ style, shape, budget, reached }, usual) {
  const share = style.heads_share;
  if (shape.width % (usual * share)) {
    return `heads of ${usual}${share > 1 ? ` in multiples of ${share}` : ""} do not divide a width of ${grouped(shape.width)}`;
  }
  const withUsual = budget.measureExactly(exact(style.shape(shape.depth, shape.width, usual, shape.ff_width)));
  if (withUsual === reached) return "so that their number divides well";
  return `with heads of ${usual} the same shape would take ${fixed(Number(withUsual) / budget.amount, 2)} times the budget`;
}

// What heads of 32 would ask for instead
function whyTinyHeads({ style, shape, budget, law_depth: lawDepth }, { least_heads: least, largest }) {
  const step = widthStep(style, least);
  if (step > largest) return `; no width has heads of ${least} as asked`;
  if (shape.width % step === 0) {
    const wider = budget.measureExactly(exact(style.shape(shape.depth, shape.width, least, shape.ff_width)));
    return `; with heads of ${least} it would take ${fixed(Number(wider) / budget.amount, 2)} times the budget`;
  }
  const units = Math.floor(shape.width / step);
  const widths = [units * step, (units + 1) * step].filter((width) => width).map((width) => {
    const depth = style.depthFor(width, style.usualFf(width), budget.amount, budget.measureOf(style), least);
    return { width, depth, far: Math.abs(Math.log(Math.max(depth, 1e-3) / lawDepth.value)) };
  });
  const { width, depth } = widths.reduce((one, other) => (other.far < one.far ? other : one));
  const layers = depth >= 1 ? `${fixed(depth / lawDepth.value, 1)} times the law's depth` : "less than one layer";
  return `; heads of ${least} would need a width of ${grouped(width)}, and at this budget ${layers}`;
}

function fewerLayers({ budget, law, shape, fewer_layers: { law_depth: L, law_params: N, gain } }) {
  let takes = `attention over ${grouped(shape.context)} tokens takes FLOPs`;
  if (budget.kind === "memory") {
    const whole = exact(shape);
    takes = `the cache takes ${showBytes(2n * BigInt(budget.batch) * whole.context * cacheElements(whole))}`;
    if (shape.kv_heads === shape.heads && shape.heads > 1) takes += ", and less with fewer key/value heads";
  }
  return `in every layer ${takes}, so fewer layers lose less: with the ${general(L, 3)} layers of the ${law.name} law this budget gives ${showCount(N)} block parameters ` +
    `and ${signedPercent(Math.expm1(gain), 1)} of expected loss`;
}

function costSource(law, laws, shape, N, pooled) {
  const text = law.own_bowl ? `loss differences come from the runs that the ${law.name} law was fitted on` : pooled;
  const beyond = laws.outsideTheData(shape.depth, N, law);
  return beyond === null ? text : `${text}; ${beyond}, so here they are extrapolated`;
}

function missed({ budget, search, reached, law_depth: lawDepth }, prices) {
  const miss = reached / budget.amount - 1;
  const nearestMiss = search.nearest.reached / budget.amount - 1;
  const { depth, width } = search.nearest;
  if (Math.abs(nearestMiss) > Math.max(prices.close, 0.9 * Math.abs(miss))) {
    return `of ${grouped(search.tried)} shapes that divide as asked, none is nearer to the budget than ${signedPercent(nearestMiss, 1)}`;
  }
  return `the plan misses the budget by ${signedPercent(miss, 1)}; the nearest of ${grouped(search.tried)} shapes that divide as asked, ` +
    `${depth} × ${width} (${signedPercent(nearestMiss, 1)}), has ${fixed(depth / lawDepth.value, 1)} times the law's depth`;
}

function planReason({ law, shape, law_params: N, law_depth: lawDepth, candidates, fixed: side }, telling) {
  let first = `At ${showCount(N)} block parameters the ${law.name} law puts the best depth at ${fixed(lawDepth.value, 1)} layers`;
  const why = side === "budget" ? "with the depth that suits the budget" : `with the ${side} you fixed`;
  if (side) first += `; ${why}, the shape has ${fixed(shape.depth / lawDepth.value, 2)} times that.`;
  else first += `, and ${shape.depth} × ${shape.width} is the nearest shape that divides well.`;
  const others = candidates.filter((c) => c.depth !== shape.depth && c.loss_percent !== null);
  if (candidates.length === 1) return `${first} No other depth that was tried divides as asked at this size.`;
  if (!others.length) return `${first} No loss data reach this far, so nothing measured says what another depth would cost.`;
  const better = others.filter((c) => c.loss_percent.high < 0);
  if (better.length) {
    const best = better.reduce((one, other) => (other.loss_percent.value < one.loss_percent.value ? other : one));
    const { value, low, high } = best.loss_percent;
    const but = side === "budget" ? "Only the budget speaks against more" : "The loss data disagree";
    return `${first} ${but}: ${best.depth} layers are expected to have ${signed(value, 1)}% of its loss ` +
      `(${signed(low, 1)} to ${signed(high, 1)}).`;
  }
  const worst = Math.max(...others.map((c) => Math.abs(c.loss_percent.value)));
  const ends = others.flatMap(({ loss_percent: c }) => [c.value, c.low, c.high]).filter((end) => end !== null).map(Math.abs);
  const surely = Math.max(...ends);
  const depths = candidates.map((c) => c.depth);
  const layers = `${Math.min(...depths)} to ${Math.max(...depths)} layers`;
  const second = surely > telling
    ? `The loss data do not tell ${layers} apart (95%: up to ${fixed(surely, 1)}% of loss)`
    : `By the loss data, loss from ${layers} is expected within ${fixed(worst, 1)}% of this plan's (95%: within ${fixed(surely, 1)}%)`;
  return `${first} ${second}, ` +
    `while every layer adds latency${side ? "." : ": where that matters, prefer the shallow side."}`;
}

const opinionSpan = (o, noLimit) =>
  withoutLimit({ value: o.depth, high: o.high }, noLimit) ? `${fixed(o.low, 1)} or more` : `${fixed(o.low, 1)}–${fixed(o.high, 1)}`;

export const opinionCells = (o, noLimit) => [
  o.law,
  o.depth === null ? "–" : fixed(o.depth, 1),
  o.low === null ? "" : opinionSpan(o, noLimit),
  o.words,
  o.status,
];

export function planWords(plan, laws, constants) {
  const { params, shape, law } = plan;
  const all = planNotes(plan, laws, constants.planner);
  const side = plan.fixed === null ? "" : plan.fixed === "budget" ? " (the budget suits fewer layers)" : ` (${plan.fixed} is fixed)`;
  const depth = depthSpan(plan.law_depth, constants.no_limit, plan.measured_depth === null ? "95%: " : "95% from its coefficients: ");
  const width = withoutLimit(plan.law_depth, constants.no_limit)
    ? `${fixed(plan.law_width.value, 0)} (at most ${fixed(plan.law_width.high, 0)})`
    : span(plan.law_width, 0, "");
  const facts = [["best depth", `${depth}, width ${width}: the ${law.name} law${side}`]];
  if (plan.measured_depth !== null) facts.push(["", `${span(plan.measured_depth, 0)}: all public loss data`]);
  facts.push(["parameters", `${grouped(params.total)} total, ${grouped(params.block)} in blocks (budget ${signedPercent(plan.miss, 1)})`]);
  facts.push(["training", `${general(plan.train_flops, 3)} FLOPs for ${showCount(plan.tokens)} tokens (${plan.budget.tokensFrom}; causal attention counted)`]);
  const training = `training ${showBytes(plan.training_state_bytes)} plus ${showBytes(plan.training_bytes_per_sequence)} per sequence`;
  facts.push(["memory", `${training}; inference ${showBytes(plan.inference_bytes)}, cache ${showBytes(plan.cache_bytes_per_token)} per token`]);
  const share = plan.candidates.find((c) => c.depth === shape.depth)?.device;
  if (share) {
    const { tensor_parallel: t, pipeline_stages: p, data_parallel: z, zero } = plan.split;
    facts.push(["per device", `training ${showBytes(share.training)}, serving ${showBytes(share.serving)}: tensor ${t} × pipeline ${p} × data ${z}, ` +
      `ZeRO ${zero}, one sequence of ${grouped(shape.context)} per micro-batch`]);
  }
  return {
    title: `Plan for ${plan.budget.words}`,
    shape: describe(shape),
    family: plan.family,
    warnings: all.filter((note) => note.code === "law-extrapolated").map((note) => note.text),
    facts,
    candidates: plan.candidates.map((c) => {
      const chosen = c.depth === shape.depth;
      return {
        chosen,
        depth: c.depth,
        cells: [String(c.depth), grouped(c.width), `${c.shape.heads} of ${c.shape.head_dim}`, grouped(c.shape.ff_width),
          showCount(c.block) + (Math.abs(c.size_percent) <= 100 * constants.planner.equal ? "" : ` (${signed(c.size_percent, 1)}%)`), `${fixed(c.depth_over_law, 2)}×`, chosen ? "–" : percent(c.loss_percent),
          `${fixed(c.step_time, 2)}×`, `${fixed(c.decode_time, 2)}×`, chosen ? "← this plan" : c.extrapolated ? "extrapolated" : ""],
      };
    }),
    shares: plan.candidates.filter((c) => c.device).map(({ depth: L, width, device }) => [String(L), grouped(width),
      ...["state", "activations", "training", "cache", "serving"].map((part) => showBytes(device[part]))]),
    opinions: plan.opinions.map((o) => opinionCells(o, constants.no_limit)),
    reason: planReason(plan, constants.planner.telling),
    nearest: plan.nearest.map((m) => `${m.name} ${m.depth} × ${grouped(m.width)} (${fixed(m.depth_over_law, 2)}×)`).join("; ") || "none of this size",
    notes: all.filter((note) => note.code !== "law-extrapolated").map((note) => note.text),
  };
}

const SHARES = ["Memory of the fullest device", "depth width weights and optimiser activations training cache serving"];
const HEADERS = "depth width heads blocks of law loss (95%) step decode";

// The lines that `deepwide plan` prints, blank ones and rules left out, spaces single
export function planLines(words) {
  return [
    words.title,
    `${words.shape} (${words.family})`,
    ...words.warnings.map((text) => `Warning: ${text}.`),
    ...words.facts.map(([label, text]) => `${label} ${text}`.trim()),
    "The same size at other depths",
    HEADERS,
    ...words.candidates.map(({ cells }) => cells.join(" ").trim()),
    ...(words.shares.length ? [...SHARES, ...words.shares.map((cells) => cells.join(" "))] : []),
    ...opinionLines(words.opinions),
    `Why ${words.reason}`,
    `Nearest public models (depth over the law's) ${words.nearest}`,
    ...words.notes.map((text) => `Note: ${text}.`),
  ];
}

export const opinionLines = (opinions) => [
  "What every law says about this size",
  "law depth 95% says status",
  ...opinions.map((cells) => cells.filter((cell) => cell).join(" ")),
];
