// A shape judged by a law: deepwide.planning's audit, and its words as `deepwide audit` prints them.
import { fixed, grouped, plural, Refusal, showCount, signed } from "./numbers.js";
import { interval } from "./laws.js";
import { roundShape, styleOfModel } from "./planner.js";
import { countParams, exact } from "./shape.js";
import { depthSpan, describe, describeBriefly, lawNotes, opinionCells, opinionLines, percent, span } from "./words.js";

function ratioOf(depth, law) {
  const value = depth / law.value;
  if (law.low === null) return { value, low: null, high: null };
  return { value, low: depth / law.high, high: law.low > 0 ? depth / law.low : Infinity };
}

function judge(ratio, within) {
  const [low, high] = ratio.low === null ? [ratio.value - within, ratio.value + within] : [ratio.low, ratio.high];
  return low > 1 ? "too deep" : high < 1 ? "too shallow" : "within";
}

function costOf(loss, small) {
  if (loss === null) return "no data";
  if (loss.low > 0) return "measurable";
  if (loss.high < 0) return "negative";
  return Math.max(-loss.low, loss.high) > small ? "not determined" : "not measurable";
}

// By how much parameters, tokens or both must grow to lose so many percent less (deepwide.laws.worth)
function growth(law, N, D, lossPercent, what, { most, largest_log: largestLog }) {
  const params = law.A / N ** law.alpha;
  const tokens = law.B / D ** law.beta;
  const wanted = (law.E + params + tokens) / (1 + lossPercent / 100) - law.E;
  const power = (now, left, exponent) => (left <= 0 ? Infinity : Math.max((now / left) ** (1 / exponent), 1 / most));
  if (what === "params") return power(params, wanted - tokens, law.alpha);
  if (what === "tokens") return power(tokens, wanted - params, law.beta);
  if (wanted <= 0) return Infinity;
  let [low, high] = [-Math.log(most), largestLog];
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (params * Math.exp(-law.alpha * middle) + tokens * Math.exp(-law.beta * middle) > wanted) low = middle;
    else high = middle;
  }
  return Math.exp((low + high) / 2);
}

// What would make a loss up, in percent more of each: the value by one surface, the limits over all published ones
function worthOf(loss, N, D, constants) {
  const surfaces = constants.compute_laws;
  const named = surfaces[constants.defaults.compute];
  const percentMore = (factor) => 100 * (factor - 1);
  const each = (what, of) => {
    const at = (law, percent) => percentMore(of(growth(law, N, D, percent, what, constants.costs)));
    const limits = Object.values(surfaces).flatMap((law) => [loss.low, loss.high].map((end) => at(law, end)));
    return { value: at(named, loss.value), low: Math.min(...limits), high: Math.max(...limits) };
  };
  const same = (factor) => factor;
  return {
    surface: constants.defaults.compute, tokens: D,
    params: each("params", same), tokensMore: each("tokens", same), flops: each("both", (k) => k * k),
  };
}

// The planner's shape of this size at the law's depth; null where it plans none
function insteadOf(shape, block, lawDepth, constants) {
  if (shape.experts || shape.latent || shape.ff_width === 0) return null;
  const style = styleOfModel(shape, constants);
  const L = Math.max(1, lawDepth);
  const amount = Number(block);
  try {
    const { depth, width, head_dim: headDim, ff_width: ff } = roundShape(style, amount, L, style.widthFor(L, amount, style.blocks), style.blocks);
    return style.shape(depth, width, headDim, ff);
  } catch (error) {
    if (error instanceof Refusal) return null;
    throw error;
  }
}

// What deepwide.audit returns, by the same names; `reading` is what readConfig gave
export function auditShape(name, reading, law, laws, constants) {
  const { shape } = reading;
  const params = countParams(exact(shape));
  const activeBlock = params.block - params.inactive;
  const N = Number(activeBlock);
  const law_depth = interval(laws.depths(law, N));
  const depth_over_law = ratioOf(shape.depth, law_depth);
  const by_total = shape.experts ? ratioOf(shape.depth, interval(laws.depths(law, Number(params.block)))) : null;
  const narrowest = Math.min(shape.vocab, shape.embedding_width || shape.width);
  const loss = laws.cost(shape.depth, law_depth.value, N, law);
  const outcome = judge(depth_over_law, constants.audit.within);
  const notes = [...reading.notes];
  if (by_total) {
    notes.push({ code: "experts", text: `laws and losses were fitted on dense models: the ${grouped(activeBlock)} active block parameters are judged ` +
      `as if they were dense, without data on experts; by all ${grouped(params.block)} the ratio would be ${fixed(by_total.value, 2)}` });
  }
  notes.push(...lawNotes(law, laws, N));
  if (!law.own_bowl) {
    notes.push({ code: "cost-centre", text: "loss differences are centred on the best depth in all public data, whichever law judges" });
  }
  const beyond = laws.outsideTheData(shape.depth, N, law);
  if (beyond) notes.push({ code: "cost-extrapolated", text: `the loss difference is extrapolated: ${beyond}` });
  if (shape.width > narrowest) {
    notes.push({ code: "wasted-width", text: `width ${grouped(shape.width)} is beyond min(vocabulary, embedding width) = ${grouped(narrowest)}: ` +
      "the rest is wasted, according to Wies et al. 2021" });
  }
  const threshold = Math.log(shape.width) / Math.log(3);
  const active = Number(params.active);
  return {
    name, shape, params, law, law_depth, depth_over_law, outcome, by_total, loss, notes, threshold, N,
    worth: loss === null ? null : worthOf(loss, active, constants.audit.tokens_per_param * active, constants),
    exact: reading.family !== null,
    totalOutcome: by_total ? judge(by_total, constants.audit.within) : null,
    cost: costOf(loss, constants.audit.small),
    instead: insteadOf(shape, params.block, law_depth.value, constants),
    past_threshold: shape.depth > threshold,
    vocabulary_wastes_width: shape.width > narrowest,
    rule: depth_over_law.low === null ? constants.audit.rule_without_errors : constants.audit.rule,
    opinions: laws.rivals(law).map((other) => laws.opinion(other, N, shape.vocab)),
  };
}

const COMPARED = { "too deep": "deeper than", "too shallow": "shallower than", within: "within the error of what" };

function sentence(audit, costWords) {
  const ratio = `${audit.name} is ${COMPARED[audit.outcome]} the ${audit.law.name} law recommends: ${plural(audit.shape.depth, "layer")}, ` +
    `${fixed(audit.depth_over_law.value, 2)} times its ${fixed(audit.law_depth.value, 1)}`;
  const { loss, cost } = audit;
  if (loss === null) return `${ratio}; no loss data reach this far.`;
  const estimate = `${signed(loss.value, 2)}% of loss against the law's depth (${signed(loss.low, 2)} to ${signed(loss.high, 2)})`;
  if (cost === "measurable") return `${ratio}; expect ${estimate}.`;
  if (cost === "negative") return `${ratio}, but the loss data disagree: ${estimate}.`;
  return `${ratio}; ${costWords[cost]}: ${estimate}.`;
}

function worthWords({ surface, tokens, params, tokensMore, flops }, noun) {
  const shown = (each, unit = "") => (each === Infinity ? "no amount" : each > 9900 ? "over 100×" : `${signed(each, 0)}${unit}`);
  const more = ({ value, low, high }, what) => {
    if (value === Infinity) return `no amount of ${what}${low === Infinity ? "" : ` (from ${shown(low, "%")})`}`;
    return `${shown(value, "%")} (${shown(low)} to ${shown(high)}) ${what}`;
  };
  return `${more(params, noun)}, or ${more(tokensMore, "tokens")}, or ${more(flops, "FLOPs")} with both grown alike ` +
    `(${surface} surface, ${showCount(tokens)} tokens; below 0: saved)`;
}

export function auditWords(audit, constants) {
  const about = audit.exact ? "" : "≈ ";
  const { params, instead, shape } = audit;
  const costWords = constants.audit.words;
  const { outcome, totalOutcome } = audit;
  const both = outcome === totalOutcome ? `${outcome} by active and total parameters` : `${outcome} by active, ${totalOutcome} by total parameters`;
  const verdict = audit.by_total ? both : outcome;
  const size = params.inactive
    ? `${about}${grouped(params.active)} active; in blocks ${grouped(params.block)}, ${grouped(params.block - params.inactive)} active`
    : `${about}${grouped(params.block)} in blocks`;
  const here = audit.past_threshold ? "past it, depth and width trade evenly" : "below it, depth is worth more than any width";
  return {
    name: audit.name,
    shape: describe(shape),
    exact: audit.exact,
    outcome: audit.outcome,
    verdict: `${verdict}, ${costWords[audit.cost]}`,
    sentence: sentence(audit, costWords),
    warnings: audit.notes.filter((note) => note.code === "law-extrapolated").map((note) => note.text),
    notes: audit.notes.filter((note) => note.code !== "law-extrapolated").map((note) => note.text),
    facts: [
      ["parameters", `${about}${grouped(params.total)} total, ${size}`],
      ["law's depth", depthSpan(audit.law_depth, constants.no_limit)],
      ["depth / law", span(audit.depth_over_law, 2)],
      ...(audit.by_total ? [["by total parameters", span(audit.by_total, 2)]] : []),
      ["loss against the law's depth", percent(audit.loss)],
      ...(audit.worth ? [["made up by", worthWords(audit.worth, params.inactive ? "active parameters" : "parameters")]] : []),
      ["the same size at the law's depth", instead ? describeBriefly(instead) : "not planned for this kind"],
      ["theory's threshold", `log_3 width = ${fixed(audit.threshold, 1)} layers: ${here} (Levine et al. 2020)`],
      ["vocabulary cap", `${grouped(shape.vocab)}: ${audit.vocabulary_wastes_width ? "width is beyond it" : "no limit here"}`],
      ["rule", audit.rule],
    ],
    opinions: audit.opinions.map((o) => opinionCells(o, constants.no_limit)),
  };
}

// The lines that `deepwide audit` prints for one model, blank ones and rules left out, spaces single
export function auditLines(words) {
  const notes = words.notes.map((text) => `Note: ${text}.`);
  return [
    `${words.name} ${words.shape}`,
    `${words.verdict} ${words.sentence}`,
    ...words.warnings.map((text) => `Warning: ${text}.`),
    ...(words.exact ? [] : notes),
    ...words.facts.map(([label, text]) => `${label} ${text}`),
    ...opinionLines(words.opinions),
    ...(words.exact ? notes : []),
  ];
}
