// From a budget to a shape: deepwide.planning's style, budget, optimum, rounding and planner, one budget at a time.
// The search counts in floats, with numpy's operations in numpy's order; what is reported is counted in BigInt.
import { divide, fixed, general, grouped, lcm, parseBytes, parseCount, plural, pythonRepr, Refusal, rint, showBytes, showCount } from "./numbers.js";
import { interval } from "./laws.js";
import { cacheElements, causalTrainingFlops, countParams, deviceShare, exact, realCounter, trainingMemory } from "./shape.js";

// Everything about a shape but its size
export class Style {
  constructor(fields, template, prices) {
    Object.assign(this, fields, { template, prices });
    this.heads_share = lcm(this.tensor_parallel, this.kv_heads ?? 1);
    this.ff_is_free = template.ff === "gated" && this.ff_ratio === null;
    this.narrow_unit = lcm(8, this.tensor_parallel);
    this.wide_unit = lcm(64, this.tensor_parallel);
    const own = this.like ? template.ff_width / template.width : 0;
    this.ratio = this.ff_ratio || own || prices.ratios[template.ff];
    this.quadruple = this.ratio === 4 && template.ff === "plain" && this.ff_ratio === null;
    const counter = realCounter(template);
    const kv = this.kv_heads;
    this.counter = counter;
    this.blocks = (L, d, headDim, f) => counter.block(L, d, d / headDim, kv ?? d / headDim, headDim, f);
    this.flops = (L, d, headDim, f) => counter.trainingFlops(L, d, d / headDim, kv ?? d / headDim, headDim, f); // of a token
  }

  withHeads(headDim) {
    return Object.assign(Object.create(Style.prototype), this, { head_dim: headDim });
  }

  shape(depth, width, headDim, ffWidth) {
    const heads = Math.floor(width / headDim);
    return { ...this.template, depth, width, heads, kv_heads: this.kv_heads ?? heads, head_dim: headDim, ff_width: ffWidth };
  }

  ffUnit(width) {
    return width >= 1024 ? this.wide_unit : this.narrow_unit;
  }

  usualFf(width) {
    if (this.quadruple) return 4 * width;
    const unit = this.ffUnit(width);
    return Math.max(1, rint((this.ratio * width) / unit)) * unit;
  }

  realFf(width) {
    return this.quadruple ? 4 * width : this.ratio * width;
  }

  // The head width that was asked for, or the one that suits the width; with as many keys as heads it changes no count
  usualHead(width) {
    return this.head_dim ?? (this.kv_heads === null ? 64 : idealHeadDim(width, this.prices));
  }

  // The real-valued width at which the measure reaches the amount
  widthFor(depth, amount, measure, stretch = 1, headDim = null) {
    let low = 0;
    let high = 25;
    for (let i = 0; i < 42; i++) {
      const middle = (low + high) / 2;
      const width = Math.exp(middle);
      if (measure(depth, width, headDim ?? this.usualHead(width), stretch * this.realFf(width)) > amount) high = middle;
      else low = middle;
    }
    return Math.exp((low + high) / 2);
  }

  // The real-valued depth at which the measure, affine in depth, reaches the amount
  depthFor(width, ffWidth, amount, measure, headDim) {
    const one = measure(1, width, headDim, ffWidth);
    const two = measure(2, width, headDim, ffWidth);
    return (amount - one) / (two - one) + 1;
  }

  widthOfBlocks(depth, blocks) {
    let width = Math.sqrt(blocks / (12 * depth));
    for (let i = 0; i < 3; i++) {
      width *= Math.sqrt(blocks / this.blocks(depth, width, this.usualHead(width), this.realFf(width)));
    }
    return width;
  }
}

const POSITIVE = ["vocab", "context", "head_dim", "kv_heads", "width_multiple", "tensor_parallel", "pipeline_stages"];

// A style from settings (null: not given), checked as Style.of checks them
export function styleOf(settings, constants) {
  const given = { ...settings };
  for (const [name, noun] of [["vocab", "a vocabulary"], ["context", "a context length"]]) given[name] = Number(parseCount(String(given[name]), noun));
  for (const name of POSITIVE) {
    if (given[name] === null) continue;
    if (given[name] < 1) throw new Refusal(`${name}: input should be greater than or equal to 1, not '${given[name]}'.`);
    if (given[name] > constants.largest) throw new Refusal(`${name}: input should be less than or equal to ${constants.largest}, not '${given[name]}'.`);
  }
  const ratio = given.ff_ratio;
  if (ratio !== null && !(ratio > 0)) throw new Refusal(`ff_ratio: input should be greater than 0, not '${ratio}'.`);
  if (ratio !== null && ratio > 64) throw new Refusal(`ff_ratio: input should be less than or equal to 64, not '${ratio}'.`);
  const name = given.family ?? (given.feed_forward === "plain" ? "gpt2" : "llama");
  const family = constants.families[name];
  if (!family) throw new Refusal(`this page has no family '${String(name).slice(0, 60)}': choose one from its list.`);
  if (family.has_experts) throw new Refusal(`planning covers dense families, and ${name} has experts.`);
  if (given.kv_heads !== null && !family.free_kv) throw new Refusal(`${name} has one key/value head per head; leave kv_heads out, or choose a family with fewer: llama (gated) or phi (plain).`);
  if (ratio !== null && family.fused.includes("ff_width")) throw new Refusal(`${name} has a feed-forward of 4 × width; leave ff_ratio out.`);
  if (given.head_dim !== null && given.head_dim % 2 && family.template.positions === "rotary") {
    throw new Refusal(`rotary positions need heads of even width, not ${given.head_dim}.`);
  }
  if (given.feed_forward !== null && given.feed_forward !== family.template.ff) {
    throw new Refusal(`the family ${name} has a ${family.template.ff} feed-forward, not a ${given.feed_forward} one: leave one of them out.`);
  }
  const template = { ...family.template, vocab: given.vocab, context: given.context, tied: given.tied ?? family.tied };
  const fields = Object.fromEntries([...POSITIVE, "ff_ratio"].map((field) => [field, given[field]]));
  return new Style({ ...fields, family: name, like: false }, template, constants.planner);
}

// The style of an existing dense model: its own head width, key/value heads and feed-forward
export function styleOfModel(shape, constants) {
  const template = { ...shape, window: null, sliding_layers: [] };
  const kv = shape.kv_heads === shape.heads ? null : shape.kv_heads;
  const fields = { vocab: shape.vocab, context: shape.context, head_dim: shape.head_dim, kv_heads: kv, ff_ratio: null,
    width_multiple: null, tensor_parallel: 1, pipeline_stages: 1, family: "llama", like: true };
  return new Style(fields, template, constants.planner);
}

function fromOneTo(most, name, count) {
  if (count === null) return;
  if (count < 1) throw new Refusal(`${name} must be at least 1, not '${count}'.`);
  if (count > most) throw new Refusal(`${name} must be at most ${grouped(most)}, not '${count}'.`);
}

// An amount, and what it limits
export class Budget {
  constructor(fields) {
    Object.assign(this, { tokens: null, inference_precision: "bf16", batch: 1, compute: "" }, fields);
  }

  static of(settings, context, constants) {
    const { kind, inference_precision: precision, batch, compute } = settings;
    let tokens = settings.tokens === null ? null : parseCount(String(settings.tokens), "a number of tokens");
    fromOneTo(constants.largest, "batch", batch);
    fromOneTo(BigInt(constants.planner.most_tokens), "tokens", tokens);
    const rule = constants.compute_laws[compute];
    const value = parseBudget(String(settings.budget), kind);
    let tokensFrom = tokens ? "given" : "20 per parameter, Chinchilla's rule of thumb";
    let chosenBy = "";
    if (kind === "flops" && tokens === null) {
      const N = rule.scale * (Number(value) / 6) ** (rule.beta / (rule.alpha + rule.beta));
      const best = rint(Number(value) / (6 * N));
      tokens = BigInt(Math.max(1, best));
      tokensFrom = `compute-optimal by ${rule.citation}`;
      chosenBy = compute;
    }
    const words = {
      block: () => `${showCount(value)} block parameters`,
      total: () => `${showCount(value)} total parameters`,
      flops: () => `${general(Number(value), 3)} training FLOPs`,
      memory: () => `${showBytes(value)} at inference (${precision}, ${batch} × ${grouped(context)} tokens of bf16 cache)`,
    }[kind]();
    return new Budget({ kind, amount: Number(value), words, tokens, tokensFrom, inference_precision: precision, batch, compute: chosenBy, surface: compute, constants });
  }

  // How much of the budget a shape takes, in floats: a function of depth, width, head width and feed-forward width
  measureOf(style) {
    const { counter, kv_heads: kv, context } = style;
    if (this.kind === "block") return style.blocks;
    if (this.kind === "total") return (L, d, headDim, f) => counter.total(L, d, d / headDim, kv ?? d / headDim, headDim, f);
    if (this.kind === "flops") {
      const tokens = Number(this.tokens ?? 0);
      return (L, d, headDim, f) => style.flops(L, d, headDim, f) * tokens;
    }
    const bytes = this.constants.inference_bytes[this.inference_precision];
    const sequences = 2 * this.batch * context;
    return (L, d, headDim, f) => {
      const cached = sequences * L * counter.cached(kv ?? d / headDim, headDim);
      return bytes * counter.total(L, d, d / headDim, kv ?? d / headDim, headDim, f) + cached;
    };
  }

  // The same of a whole shape, counted exactly before it becomes a float
  measureExactly(s) {
    if (this.kind === "block") return Number(countParams(s).block);
    if (this.kind === "total") return Number(countParams(s).total);
    if (this.kind === "flops") return causalTrainingFlops(s) * Number(this.tokens ?? 0);
    const bytes = this.constants.inference_bytes[this.inference_precision];
    const cached = 2n * BigInt(this.batch) * s.context * s.depth * cacheElements(s);
    const { total } = countParams(s);
    return Number.isInteger(bytes) ? Number(BigInt(bytes) * total + cached) : bytes * Number(total) + Number(cached);
  }

  checkRange(style) {
    const { least_params: LEAST, most_params: MOST } = this.constants.planner;
    let least = this.measureOf(style)(1, 1, style.usualHead(1), style.realFf(1));
    let low;
    let high;
    if (this.compute) {
      const rule = this.constants.compute_laws[this.compute];
      low = this.leastFlops(style, rule, LEAST);
      high = 6 * (MOST / rule.scale) ** ((rule.alpha + rule.beta) / rule.beta);
      least = 0;
    } else {
      const unit = { flops: 6 * Number(this.tokens ?? 1), memory: this.constants.inference_bytes[this.inference_precision] }[this.kind] ?? 1;
      low = Math.max(LEAST * unit, Math.ceil(least));
      high = MOST * unit;
    }
    if (this.amount >= low && this.amount <= high) return;
    let because = "";
    const read = this.kind === "memory" && this.amount < low ? `, and this was read as ${plural(this.amount, "byte")} (gigabytes are written 24GB)` : "";
    if (least >= low && this.amount < low) because = `; one layer of width 1 with vocabulary ${grouped(style.vocab)} takes ${this.show(least)}`;
    else if (this.kind === "block" && this.amount > high) because = "; if this is a number of training FLOPs or of bytes, say so";
    else if (this.kind === "flops" && !this.compute) because = `; the training tokens given are ${grouped(this.tokens)}`;
    throw new Refusal(`the budget must be between ${this.show(low)} and ${this.show(high)} here${read}${because}.`);
  }

  // The budget that is best spent on the smallest model, one layer, with the tokens that suit it
  leastFlops(style, rule, size) {
    const width = style.widthFor(1, size, style.blocks);
    const [[N, cost], [more, dearer]] = [width, 1.001 * width].map((d) => [style.blocks(1, d, style.usualHead(d), style.realFf(d)), style.flops(1, d, style.usualHead(d), style.realFf(d))]);
    const share = Math.log(dearer / cost) / Math.log(more / N);
    const logD = Math.log((rule.beta * rule.B * share) / (rule.alpha * rule.A)) + rule.alpha * Math.log(N);
    return cost * Math.exp(Math.min(logD / rule.beta, 600));
  }

  show(amount) {
    if (this.kind === "memory") return showBytes(amount);
    const noun = this.kind === "flops" ? "FLOPs" : "parameters";
    return `${amount >= 1e15 ? general(amount, 3) : showCount(amount)} ${noun}`;
  }
}

function parseBudget(text, kind) {
  if (kind === "memory") return parseBytes(text);
  try {
    return parseCount(text, "a budget");
  } catch (error) {
    let isMemory = /b$/i.test(text);
    try {
      parseBytes(text);
    } catch {
      isMemory = false;
    }
    if (isMemory) throw new Refusal(`${pythonRepr(text.slice(0, 40))} is a memory size: say that the budget is memory.`);
    throw error;
  }
}

// ---- the real-valued optimum

function clippedDepths(laws, law, N, limits) {
  return laws.depths(law, N).map((L) => (Number.isNaN(L) ? L : Math.min(Math.max(L, limits[0]), limits[1])));
}

function checkFixed(style, depth, width, prices) {
  if (depth !== null) {
    fromOneTo(prices.deepest, "depth", depth);
    if (depth % style.pipeline_stages) throw new Refusal(`depth ${depth} is not a multiple of the ${style.pipeline_stages} pipeline stages.`);
  }
  fromOneTo(Infinity, "width", width);
}

// Where a loss is least, and how much that is, by golden section
function leastBetween(low, high, lossAt, prices) {
  let [left, right] = [high - prices.golden * (high - low), low + prices.golden * (high - low)];
  let [atLeft, atRight] = [lossAt(left), lossAt(right)];
  for (let i = 0; i < prices.sections; i++) {
    if (atLeft <= atRight || atLeft === Infinity) {
      [high, right, atRight] = [right, left, atLeft];
      left = high - prices.golden * (high - low);
      atLeft = lossAt(left);
    } else {
      [low, left, atLeft] = [left, right, atRight];
      right = low + prices.golden * (high - low);
      atRight = lossAt(right);
    }
  }
  return atLeft <= atRight ? [left, atLeft] : [right, atRight];
}

// The shape and tokens of least expected loss, where a compute law chooses the tokens (planning/tokens.py)
function bestSpending(style, laws, law, budget, fixedDepth, fixedWidth, prices) {
  budget.checkRange(style);
  checkFixed(style, fixedDepth, fixedWidth, prices);
  const rule = budget.constants.compute_laws[budget.compute];
  const stages = style.pipeline_stages;
  const even = style.kv_heads !== null && style.head_dim === null ? style.withHeads(prices.narrow_heads) : style;
  const lossOf = (own, L, d, headDim, f) => {
    const [N, D] = [own.blocks(L, d, headDim, f), budget.amount / own.flops(L, d, headDim, f)];
    return Math.log(rule.E + rule.A * N ** -rule.alpha + rule.B * D ** -rule.beta) + laws.ownCost(L, N, law);
  };
  const loss = (L, d) => lossOf(even, L, d, even.usualHead(d), even.realFf(d));
  const lawDepth = (x) => Math.max(1, clippedDepths(laws, law, Math.exp(x), prices.law_depths)[0]);
  const onTheLaw = (x) => loss(lawDepth(x), even.widthOfBlocks(lawDepth(x), Math.exp(x)));
  const [logSize] = leastBetween(Math.log(12), Math.log(prices.most_params * 16), onTheLaw, prices);
  const usual = usualDepths(style, lawDepth(logSize));
  let centres;
  let least;
  let left = false;
  let atUsual = null;
  if (fixedWidth !== null) {
    const [logDepth, best] = leastBetween(0, Math.log(prices.deepest), (x) => loss(Math.exp(x), fixedWidth), prices);
    const unit = Math.max(1, Math.floor(Math.exp(logDepth) / stages));
    centres = [unit, unit + 1].map((each) => [each * stages, fixedWidth]);
    least = best;
  } else {
    if (fixedDepth === null) checkStages(style, law, lawDepth(logSize), prices);
    const sized = (fixedDepth === null ? depthsUpTo(style, usual, prices) : [fixedDepth]).map((L) => [L, ...leastBetween(0, prices.widest, (x) => loss(L, Math.exp(x)), prices)]);
    centres = sized.map(([L, x]) => [L, Math.exp(x)]);
    least = Math.min(...sized.map((each) => each[2]));
    const [L, x, usualLoss] = sized.find(([each]) => each === usual) ?? sized[0];
    const d = Math.exp(x);
    atUsual = { L, N: even.blocks(L, d, even.usualHead(d), even.realFf(d)), loss: usualLoss };
    left = fixedDepth === null && usual > sized[0][0] && usualLoss > least + prices.near;
  }
  const tried = [];
  for (const headDim of headDims(style)) {
    const step = widthStep(style, headDim);
    if (step > prices.largest) continue;
    for (const [D, centre] of centres) {
      for (const W of allowedWidths(centre, step, fixedWidth !== null)) {
        if (W % step || W > prices.largest) continue;
        const F = style.usualFf(W);
        tried.push({ depth: D, width: W, head_dim: headDim, ff_width: F, loss: lossOf(style, D, W, headDim, F), price: lossApart(style, D, W, headDim, usual, prices), kind: headsKind(style, W, headDim, prices) });
      }
    }
  }
  const best = choose(tried, least, prices);
  if (best === null) throw new Refusal(whyNothingFits(style, fixedWidth !== null, false, rint(centres[0][1])));
  if (best.loss > least + prices.most_loss) {
    throw new Refusal(`the best shape that divides as asked, ${best.depth} × ${best.width}, is expected to have ` +
      `${fixed(100 * Math.expm1(best.loss - least), 0)}% more loss than one that need not: loosen kv_heads, tensor_parallel, pipeline_stages, width_multiple or head_dim.`);
  }
  const each = causalTrainingFlops(exact(style.shape(best.depth, best.width, best.head_dim, best.ff_width)));
  budget.tokens = BigInt(Math.max(1, Math.floor(budget.amount / each)));
  return [best, { ...atUsual, gain: left ? atUsual.loss - best.loss : null }];
}

// ---- which shape to take of many whose expected loss is nearly the least (planning/choosing.py)

function lossApart(style, D, W, headDim, usualDepth, prices) {
  return depthPrice(D, usualDepth, prices) + headPrice(style, W, headDim, prices) + prices.more_odd * oddHeads(W, headDim, prices);
}

// Whether heads are usual at a width (0), between the usual widths (1) or neither (2)
function headsKind(style, W, headDim, prices) {
  const narrowest = W >= 512 ? prices.narrow_heads : W >= prices.small_width ? prices.least_heads : 1;
  const suits = style.head_dim !== null || (headDim >= narrowest && headDim <= 2 * idealHeadDim(W, prices));
  return suits ? Number(style.head_dim === null && prices.between.includes(headDim)) : 2;
}

function choose(tried, least, prices) {
  let best = null;
  for (let kind = 0; kind < prices.kinds; kind++) {
    const allowed = tried.filter((each) => each.kind <= kind);
    const floor = allowed.reduce((one, other) => Math.min(one, other.loss), Infinity);
    if (floor < Infinity) best = allowed.filter((each) => each.loss <= floor + prices.near).reduce((one, other) => (other.price < one.price ? other : one));
    if (floor <= least + prices.dearer) break;
  }
  return best;
}

// Whole stages up to twice the law's depth, that depth among them; thinned where there are very many
function depthsUpTo(style, usual, prices) {
  const stages = style.pipeline_stages;
  const most = Math.max(1, Math.floor((usual * prices.deeper) / stages));
  let units = Array.from({ length: most }, (_, i) => i + 1);
  if (most > prices.most_depths) units = [...new Set([...geometric(1, most, prices.most_depths).map(rint), Math.floor(usual / stages)])].sort((a, b) => a - b);
  return units.map((unit) => unit * stages);
}

// np.geomspace
function geometric(low, high, count) {
  const step = (Math.log10(high) - Math.log10(low)) / (count - 1);
  const points = Array.from({ length: count }, (_, i) => 10 ** (i * step + Math.log10(low)));
  points[0] = low;
  points[count - 1] = high;
  return points;
}

function checkStages(style, law, shallowest, prices) {
  const stages = style.pipeline_stages;
  if (stages > prices.far * shallowest) {
    throw new Refusal(`${grouped(stages)} pipeline stages need at least ${grouped(stages)} layers, more than ${prices.far} times the ` +
      `${fixed(shallowest, 1)} of the ${law.name} law: use fewer stages.`);
  }
}

function findOptimum(style, laws, law, budget, fixedDepth, fixedWidth, prices) {
  budget.checkRange(style);
  checkFixed(style, fixedDepth, fixedWidth, prices);
  const measure = budget.measureOf(style);
  const exactly = (L, width) => ({ depth: [L, NaN, NaN], width, N: style.blocks(L, width, style.usualHead(width), style.realFf(width)), gain: null });
  if (fixedDepth !== null) return exactly(fixedDepth, style.widthFor(fixedDepth, budget.amount, measure));
  if (fixedWidth !== null) {
    const L = style.depthFor(fixedWidth, style.realFf(fixedWidth), budget.amount, measure, style.usualHead(fixedWidth));
    if (L < 1) throw new Refusal(`width ${fixedWidth} leaves no room for one layer in this budget: make it narrower.`);
    return exactly(L, fixedWidth);
  }
  const N = budget.kind === "block" ? budget.amount : sizeOnTheLaw(style, laws, law, budget, prices);
  const predicted = clippedDepths(laws, law, N, prices.law_depths);
  const curve = predicted.map((L) => (Number.isNaN(L) ? L : Math.max(1, L)));
  let width = style.widthOfBlocks(curve[0], N);
  checkStages(style, law, curve[0], prices);
  if (predicted[0] < 1) width = style.widthFor(curve[0], budget.amount, measure);
  return { depth: curve, width, N, gain: null };
}

// The block parameters at which a shape of the law's depth takes the budget, with heads that leave room for most
function sizeOnTheLaw(style, laws, law, budget, prices) {
  const N = sizeWithHeads(style, laws, law, budget, null, prices);
  if (budget.kind === "total" || style.head_dim !== null || style.kv_heads === null) return N;
  const narrow = sizeWithHeads(style, laws, law, budget, prices.narrow_heads, prices);
  const width = style.widthOfBlocks(clippedDepths(laws, law, narrow, prices.law_depths)[0], narrow);
  return narrow > N && width >= 512 ? narrow : N;
}

function sizeWithHeads(style, laws, law, budget, headDim, prices) {
  const measure = budget.measureOf(style);
  let low = Math.log(12);
  let high = Math.log(prices.most_params * 16);
  for (let i = 0; i < 42; i++) {
    const middle = (low + high) / 2;
    const N = Math.exp(middle);
    const L = clippedDepths(laws, law, N, prices.law_depths)[0];
    const width = style.widthOfBlocks(L, N);
    if (measure(L, width, headDim ?? style.usualHead(width), style.realFf(width)) > budget.amount) high = middle;
    else low = middle;
  }
  return Math.exp((low + high) / 2);
}

// ---- the shape that a budget of memory, or of FLOPs for given tokens, is best filled with (planning/filling.py)

function fillBudget(style, laws, law, budget, fixedDepth, neverOver, prices) {
  const optimum = findOptimum(style, laws, law, budget, fixedDepth, null, prices);
  const usual = usualDepths(style, optimum.depth[0]);
  const measure = budget.measureOf(style);
  const rule = budget.constants.compute_laws[budget.surface];
  const isFixed = fixedDepth !== null;
  const widest = style.ff_is_free && budget.kind === "memory" ? prices.ff_stretch[1] : 1; // has no cache
  const real = (isFixed ? [usual] : depthsUpTo(style, usual, prices)).map((L) => mostAt(style, budget.amount, measure, L, widest));
  let best = real.find(({ L }) => L === usual);
  let lossOf;
  for (let round = 0; round < prices.rounds; round++) {
    const perBlock = best.P / best.N;
    const tokens = budget.tokens === null ? 20 * best.P : Number(budget.tokens);
    lossOf = (L, N) => {
      const loss = Math.log(rule.E + rule.A * (perBlock * N) ** -rule.alpha + rule.B * tokens ** -rule.beta);
      return isFixed ? loss : loss + laws.ownCost(L, N, law);
    };
    for (const each of real) each.loss = lossOf(each.L, each.N);
    best = real.reduce((one, other) => (other.loss < one.loss ? other : one));
  }
  const least = best.loss;
  const tryAll = (depths, heads) => depths.flatMap(({ L: D, N: most }) => heads.flatMap((headDim) => {
    const step = widthStep(style, headDim);
    if (step > prices.largest) return [];
    return [...new Set([1, widest])].flatMap((stretch) => {
      // With as many keys as heads their width changes no count
      const centre = style.widthFor(D, budget.amount, measure, stretch, style.kv_heads === null ? heads.find((each) => widthStep(style, each) <= prices.largest) : headDim);
      return allowedWidths(centre, step, false).map((W) => {
        const [F, usualFf, reached] = fittingFf(style, D, W, headDim, budget.amount, measure, neverOver, prices);
        const fits = W % step === 0 && W <= prices.largest && !(neverOver && exceeds(reached, budget.amount));
        const price = lossApart(style, D, W, headDim, usual, prices) + missPrice(reached, budget.amount, prices) + prices.stretching * Math.abs(Math.log(F / usualFf));
        let size = style.blocks(D, W, headDim, F);
        if (budget.kind === "flops") size = Math.min(size * Math.min(1, budget.amount / reached), most); // exceeding must not pay
        const loss = fits ? lossOf(D, size) : Infinity;
        return { depth: D, width: W, head_dim: headDim, ff_width: F, loss, price, kind: headsKind(style, W, headDim, prices) };
      });
    });
  }));
  let tried = tryAll(real.filter(({ loss }) => loss <= least + prices.likely), style.head_dim === null ? prices.head_dims : headDims(style));
  const floor = tried.reduce((one, other) => (other.kind === 0 ? Math.min(one, other.loss) : one), Infinity);
  if (floor + prices.near > least + prices.likely) tried = tryAll(real, headDims(style)); // others may be as good
  const shape = choose(tried, least, prices);
  if (shape === null) throw new Refusal(whyNothingFits(style, false, neverOver, rint(style.widthFor(usual, budget.amount, measure))));
  const onLaw = mostAt(style, budget.amount, measure, optimum.depth[0], widest);
  const lawLoss = lossOf(onLaw.L, onLaw.N);
  const left = !isFixed && shape.depth < onLaw.L && lawLoss > least + prices.near;
  refuseWhatIsFar(style, budget, measure, shape, prices);
  return [shape, { depth: [usual, NaN, NaN], L: onLaw.L, N: onLaw.N, gain: left ? lawLoss - shape.loss : null }];
}

// The most parameters at a depth: with the widest feed-forward, and with narrow heads if they leave more
function mostAt(style, amount, measure, L, stretch) {
  const { prices } = style;
  const sized = (headDim) => {
    const width = style.widthFor(L, amount, measure, stretch, headDim);
    const head = headDim ?? style.usualHead(width);
    const heads = width / head;
    const F = stretch * style.realFf(width);
    return { L, width, N: style.blocks(L, width, head, F), P: style.counter.total(L, width, heads, style.kv_heads ?? heads, head, F) };
  };
  const usual = sized(null);
  if (style.head_dim !== null || style.kv_heads === null) return usual;
  const narrow = sized(prices.narrow_heads);
  return narrow.N > usual.N && narrow.width >= 512 ? narrow : usual;
}

// ---- the integer shape nearest to it

export function idealHeadDim(width, prices) {
  return prices.ideal_head_dim.find(([least]) => width >= least)[1];
}

export const widthStep = (style, headDim) => lcm(headDim * style.heads_share, style.width_multiple ?? 1);

// The feed-forward width that meets the target best, the usual one, and what is reached
function fittingFf(style, D, W, headDim, target, measure, neverOver, prices) {
  const usual = style.usualFf(W);
  const measured = (F) => measure(D, W, headDim, F);
  const reached = measured(usual);
  if (!style.ff_is_free) return [usual, usual, reached];
  const unit = style.ffUnit(W);
  const perUnit = measured(usual + unit) - reached;
  let more = (target - reached) / perUnit;
  const savesLittle = perUnit * (usual / unit) < prices.stretching * reached;
  if (!neverOver && more < 0 && savesLittle && reached < target * Math.exp(prices.close)) more = 0;
  const [narrow, wide] = prices.ff_stretch.map((factor) => rint((usual * factor) / unit));
  const units = Math.min(Math.max(usual / unit + (neverOver ? Math.floor(more) : rint(more)), Math.max(1, narrow)), wide);
  const F = Math.trunc(units) * unit;
  return [F, usual, measured(F)];
}

// Floats count to 2^53 exactly, and beyond one stays clear of rounding
const exceeds = (reached, target) => reached > (target < 2 ** 53 ? target : target * (1 - 1e-15));

function missPrice(reached, target, prices, close = prices.close) {
  const miss = Math.abs(Math.log(reached / target));
  return miss + prices.missing * Math.max(0, miss - close);
}

const depthPrice = (D, usualDepth, prices) => (usualDepth === D ? 0 : prices.leaving_the_law + 0.5 * Math.abs(Math.log(D / usualDepth)));

// One shape of a depth, a width and the feed-forward that meets the target best, and its price
function attempt(style, D, W, headDim, target, usualDepth, measure, neverOver, step, prices, close) {
  const [F, usual, reached] = fittingFf(style, D, W, headDim, target, measure, neverOver, prices);
  let score = Infinity;
  if (W % step === 0 && W <= prices.largest && !(neverOver && exceeds(reached, target))) {
    score = missPrice(reached, target, prices, close) + depthPrice(D, usualDepth, prices) + headPrice(style, W, headDim, prices);
    score += prices.stretching * Math.abs(Math.log(F / usual));
  }
  return { depth: D, width: W, head_dim: headDim, ff_width: F, score, reached };
}

// The price of heads of this width at a width: of their width, and of their number
function headPrice(style, W, headDim, prices) {
  let price = prices.narrower_heads * Math.abs(Math.log2(headDim / idealHeadDim(W, prices)));
  if (style.head_dim === null) {
    price += prices.between.includes(headDim) ? prices.between_heads : 0;
    price += W >= 512 && headDim < prices.narrow_heads ? prices.unusual_heads : 0;
    price += W >= prices.small_width && headDim < prices.least_heads ? prices.tiny_heads * Math.log2(64 / headDim) : 0;
  }
  return price + oddHeads(W, headDim, prices);
}

// The price of a number of heads that kernels and parallel ranks do not like
function oddHeads(W, headDim, prices) {
  const heads = Math.floor(W / headDim);
  const odd = (heads % 2 > 0) * 0.5 + (heads % 4 > 0) * 0.25 + (heads % 8 > 0) * 0.25;
  return W >= 512 ? prices.odd_heads * odd : 0;
}

// The head widths that are tried: first the usual ones, then those between them
const headDims = ({ head_dim: given, prices }) => (given === null ? [...prices.head_dims, ...prices.between] : [given]);

const usualDepths = (style, depth) => Math.max(1, rint(depth / style.pipeline_stages)) * style.pipeline_stages;

// Allowed widths around the wanted one: five neighbours, and those that give 2, 4 or 8 times a number of heads
function allowedWidths(width, step, isFixed) {
  if (isFixed) return [rint(width)];
  const unit = rint(width / step);
  const units = [-2, -1, 0, 1, 2].map((more) => unit + more);
  for (const times of [2, 4, 8]) units.push(rint(width / (step * times)) * times);
  return units.map((each) => Math.max(1, each) * step);
}

// The depths that bracket the target at a width, with the usual feed-forward and with it stretched
function depthsAt(style, W, target, measure, headDim, prices) {
  const stages = style.pipeline_stages;
  const usual = style.usualFf(W);
  return (style.ff_is_free ? [1, ...prices.ff_stretch] : [1]).flatMap((stretch) => {
    const depth = style.depthFor(W, stretch * usual, target, measure, headDim);
    const below = Math.max(1, Math.floor(depth / stages)) * stages;
    return [below, below + stages];
  });
}

export function roundShape(style, amount, depth, width, measure, { fixedDepth = false, fixedWidth = false, neverOver = false, close = style.prices.close } = {}) {
  const { prices } = style;
  const usual = usualDepths(style, depth);
  const moved = !fixedWidth && Math.abs(Math.log(usual / depth)) > 0.1;
  const centre = moved ? style.widthFor(usual, amount, measure) : width;
  const ideal = idealHeadDim(centre, prices);
  let best = null;
  let search; // stays undefined where there was no need for one
  const allHeads = headDims(style);
  const usualHeads = style.head_dim === null ? prices.head_dims : allHeads;
  const passes = [[false, usualHeads], [false, allHeads.slice(usualHeads.length)]];
  for (const [otherDepths, heads] of fixedDepth ? passes : [...passes, [true, allHeads]]) {
    if (best !== null && !(best.score > prices.leaving_the_law)) break;
    for (const headDim of heads) {
      const suits = headDim <= 2 * ideal && headDim >= (ideal >= 64 ? ideal / 2 : 8);
      if (!(suits || fixedWidth || style.head_dim !== null)) continue;
      const step = widthStep(style, headDim);
      if (step > prices.largest) continue;
      const scores = [];
      for (const W of allowedWidths(centre, step, fixedWidth)) {
        for (const D of otherDepths ? depthsAt(style, W, amount, measure, headDim, prices) : [usual]) {
          scores.push(attempt(style, D, W, headDim, amount, usual, measure, neverOver, step, prices, close));
        }
      }
      const least = scores.reduce((one, other) => (other.score < one.score ? other : one));
      if (least.score < (best?.score ?? Infinity)) best = least;
    }
  }
  if (best === null || best.score > prices.dear || Math.abs(Math.log(best.reached / amount)) > close) {
    const wide = fixedWidth ? rint(width) : null;
    search = searchWidely(style, amount, usual, measure, { width: wide, fixedDepth, neverOver, close });
    if (search !== null && search.best.score < (best?.score ?? Infinity)) best = search.best;
  }
  if (best === null) throw new Refusal(whyNothingFits(style, fixedWidth, neverOver, rint(width)));
  return { ...best, search };
}

// Whole stages from an eighth of the usual depth to eight times it; thinned where there are very many
function allDepths(style, usual, prices) {
  const stages = style.pipeline_stages;
  const low = Math.max(1, Math.ceil(usual / prices.far / stages));
  const high = Math.max(1, Math.floor((usual * prices.far) / stages));
  if (high - low < prices.most_depths) return Array.from({ length: high - low + 1 }, (_, i) => (low + i) * stages);
  return [...new Set(geometric(low, high, prices.most_depths).map(rint))].sort((a, b) => a - b).map((each) => each * stages);
}

export function searchWidely(style, target, usual, measure, { width = null, fixedDepth = false, neverOver = false, close = style.prices.close } = {}) {
  const { prices } = style;
  const depths = fixedDepth ? [usual] : allDepths(style, usual, prices);
  const stretches = style.ff_is_free ? [prices.ff_stretch[0], 1, prices.ff_stretch[1]] : [1];
  let widths = null;
  let best = null;
  let nearest = null;
  let tried = 0;
  for (const headDim of headDims(style)) {
    const step = widthStep(style, headDim);
    if (step > prices.largest) continue;
    if (width === null && (widths === null || style.kv_heads !== null)) {
      widths = depths.map((D) => stretches.map((stretch) => style.widthFor(D, target, measure, stretch, headDim)));
    }
    let leastScore = null;
    let leastMiss = null;
    depths.forEach((D, row) => {
      const across = width === null ? widths[row].flatMap((w) => [0, 1].map((more) => Math.max(1, Math.floor(w / step) + more) * step)) : [width];
      for (const W of across) {
        const one = attempt(style, D, W, headDim, target, usual, measure, neverOver, step, prices, close);
        if (!Number.isFinite(one.score)) continue;
        tried += 1;
        one.miss = Math.abs(Math.log(one.reached / target));
        if (leastScore === null || one.score < leastScore.score) leastScore = one;
        if (leastMiss === null || one.miss < leastMiss.miss) leastMiss = one;
      }
    });
    if (leastScore === null) continue;
    if (best === null || leastScore.score < best.score) best = leastScore;
    if (nearest === null || leastMiss.miss < nearest.miss) nearest = leastMiss;
  }
  return best === null ? null : { best, nearest, tried };
}

function whyNothingFits(style, fixedWidth, neverOver, width) {
  const heads = `heads of ${style.head_dim ?? style.prices.head_dims.join(", ")}`;
  if (fixedWidth) {
    return `width ${width} cannot be split into ${heads}, in multiples of tensor_parallel ${style.tensor_parallel} ` +
      `and kv_heads ${style.kv_heads ?? 1}, and of ${style.width_multiple ?? 1}: change one of them.`;
  }
  const reason = neverOver ? "no shape of this style stays below the budget" : "nothing fits";
  return `${reason}: allow more, or loosen vocabulary, context, head_dim or the divisibility asked for.`;
}

function roundOptimum(style, budget, optimum, fixedSide, neverOver, prices) {
  const measure = budget.measureOf(style);
  const rounded = roundShape(style, budget.amount, optimum.depth[0], optimum.width, measure,
    { fixedDepth: fixedSide === "depth", fixedWidth: fixedSide === "width", neverOver });
  refuseWhatIsFar(style, budget, measure, rounded, prices);
  return rounded;
}

function refuseWhatIsFar(style, budget, measure, rounded, prices) {
  const reached = measure(rounded.depth, rounded.width, rounded.head_dim, rounded.ff_width);
  if (Math.abs(Math.log(reached / budget.amount)) > Math.log(prices.too_far)) {
    throw new Refusal(`the nearest shape that divides as asked, ${rounded.depth} × ${rounded.width}, misses the budget by more than a factor ` +
      `${prices.too_far}: loosen kv_heads, tensor_parallel, pipeline_stages, width_multiple or head_dim.`);
  }
}

// ---- the plan

function decoding(settings, constants) {
  const text = String(settings.bandwidth);
  let rate = NaN;
  try {
    rate = Number(parseBytes(text.trim().replace(/\/s$/, "")));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
  }
  if (!(rate >= 1e6 && rate < Infinity)) {
    throw new Refusal(`bandwidth must be 1 MB per second or more, such as 3350GB, not ${pythonRepr(text.slice(0, 40))}.`);
  }
  const overhead = settings.layer_us;
  if (!(overhead >= 0 && overhead <= 1e6)) throw new Refusal(`layer_us must be from 0 to 1e6 microseconds per layer, not '${overhead}'.`);
  const prices = constants.planner;
  const isUsual = settings.bandwidth === prices.bandwidth && overhead === prices.layer_us;
  const [all, each] = (isUsual && prices.tensor_parallel[settings.tensor_parallel]) || [rate, overhead]; // a preset of so many ranks
  const bytes = constants.inference_bytes[settings.inference_precision];
  return (s) => {
    const whole = exact(s);
    const cached = 2n * BigInt(settings.batch) * whole.context * whole.depth * cacheElements(whole);
    return (bytes * Number(countParams(whole).total) + Number(cached)) / all + s.depth * (each / 1e6);
  };
}

// What deepwide.plan returns, by the same names; `settings` has every option of the plan, null where it is not given
export function makePlan(settings, constants, laws) {
  const prices = constants.planner;
  const style = styleOf(settings, constants);
  const law = laws.named(settings.law);
  if (!law.predicts) throw new Refusal(`the law '${law.name}' predicts no depth.`);
  const budget = Budget.of(settings, style.context, constants);
  if (settings.depth !== null && settings.width !== null) {
    throw new Refusal("depth and width together are the size: fix one of them and the budget gives the other.");
  }
  const decodeSeconds = decoding(settings, constants);
  const fixedSide = settings.depth !== null ? "depth" : settings.width !== null ? "width" : null;
  const neverOver = settings.at_most || budget.kind === "memory";
  let rounded;
  let optimum;
  if (budget.compute) {
    [rounded, optimum] = bestSpending(style, laws, law, budget, settings.depth, settings.width, prices);
  } else if (["memory", "flops"].includes(budget.kind) && settings.width === null) {
    [rounded, optimum] = fillBudget(style, laws, law, budget, settings.depth, neverOver, prices);
  } else {
    optimum = findOptimum(style, laws, law, budget, settings.depth, settings.width, prices);
    rounded = roundOptimum(style, budget, optimum, fixedSide, neverOver, prices);
  }
  const shape = style.shape(rounded.depth, rounded.width, rounded.head_dim, rounded.ff_width);
  const whole = exact(shape);
  const reached = budget.measureExactly(whole);
  const params = countParams(whole);
  const left = optimum.gain !== null;
  const bySize = fixedSide === null && !left && budget.kind === "block"; // else the law is asked about the size that came out
  const law_params = bySize ? optimum.N : Number(params.block);
  const own = () => laws.depths(law, law_params).map((L) => (fixedSide === null && !Number.isNaN(L) ? Math.max(1, L) : L));
  const law_depth = interval(bySize ? optimum.depth : own());
  const training = trainingMemory(whole, constants.training_precision);
  const bytes = constants.inference_bytes[settings.inference_precision];
  const weightBytes = (P) => (Number.isInteger(bytes) ? BigInt(bytes) * P : halfOf(P));
  fromOneTo(constants.largest, "data_parallel", settings.data_parallel);
  if (settings.zero > 3) throw new Refusal(`zero must be 0, 1, 2 or 3, not '${settings.zero}'.`);
  const split = { tensor_parallel: style.tensor_parallel, pipeline_stages: style.pipeline_stages, data_parallel: settings.data_parallel, zero: settings.zero };
  const isSplit = style.tensor_parallel > 1 || style.pipeline_stages > 1 || settings.data_parallel > 1 || settings.zero > 0;
  const perPosition = cacheElements(whole);
  const tokens = budget.tokens ?? 20n * params.total;
  const perToken = causalTrainingFlops(whole);
  const widthAt = (L) => (L === null ? null : style.widthOfBlocks(L, law_params));
  const candidates = findCandidates(style, shape, params.block, law, laws, law_params, decodeSeconds, constants);
  for (const c of candidates) c.budget_share = Number(budget.measureExactly(exact(c.shape))) / budget.amount;
  for (const c of isSplit ? candidates : []) c.device = deviceShare(exact(c.shape), split, constants.training_precision, weightBytes, settings.batch);
  let search = null;
  if (!budget.compute && Math.abs(reached / budget.amount - 1) > prices.close) {
    search = rounded.search !== undefined ? rounded.search : searchWidely(style, budget.amount, usualDepths(style, optimum.depth[0]), budget.measureOf(style),
      { width: settings.width, fixedDepth: fixedSide === "depth", neverOver });
  }
  return {
    budget, style, law, law_params, law_depth, shape, params, tokens, candidates, search, reached,
    fixed: left ? "budget" : fixedSide,
    fewer_layers: left ? { law_depth: optimum.L, law_params: optimum.N, gain: optimum.gain } : null,
    data_parallel: settings.data_parallel,
    zero: settings.zero,
    batch: settings.batch,
    family: style.family,
    miss: rint(reached) / rint(budget.amount) - 1,
    law_width: { value: widthAt(law_depth.value), low: widthAt(law_depth.high), high: widthAt(law_depth.low) },
    measured_depth: law.own_bowl ? null : laws.measuredOptimum(law_params, 1),
    train_flops: perToken * Number(tokens),
    training_bytes_per_sequence: training.perSequence,
    training_state_bytes: training.state,
    split: isSplit ? split : null,
    inference_bytes: weightBytes(params.total) + 2n * BigInt(settings.batch) * whole.depth * whole.context * perPosition,
    cache_bytes_per_token: 2n * whole.depth * perPosition,
    opinions: laws.rivals(law).map((other) => laws.opinion(other, law_params, shape.vocab)),
    nearest: nearestModels(shape, params.block, constants.models).map((model) => ({
      ...model, depth_over_law: model.depth / laws.depthAt(law, model.block),
    })),
  };
}

// round(0.5 · P)
function halfOf(P) {
  return P % 4n === 3n ? P / 2n + 1n : P / 2n;
}

// About the same block parameters at other depths; those that constraints push off the size are left out
function findCandidates(style, best, blocks, law, laws, lawParams, decodeSeconds, constants) {
  const { same_size: SAME, equal: EQUAL, depth_factors: FACTORS } = constants.planner;
  const stages = style.pipeline_stages;
  const N = Number(blocks);
  const lawDepth = laws.depthAt(law, lawParams);
  const depths = [...new Set(FACTORS.map((factor) => Math.max(1, rint((best.depth * factor) / stages)) * stages))].sort((a, b) => a - b);
  const bestSeconds = decodeSeconds(best);
  return depths.flatMap((depth) => {
    const width = style.widthFor(depth, N, style.blocks);
    const rounded = roundShape(style, N, depth, width, style.blocks, { fixedDepth: true, close: EQUAL });
    const shape = rounded.depth === best.depth ? best : style.shape(rounded.depth, rounded.width, rounded.head_dim, rounded.ff_width);
    const block = countParams(exact(shape)).block;
    if (Math.abs(divide(block, blocks) - 1) > SAME) return [];
    return [{
      shape, block,
      depth: shape.depth,
      width: shape.width,
      size_percent: 100 * (divide(block, blocks) - 1),
      depth_over_law: shape.depth / lawDepth,
      loss_percent: laws.cost(shape.depth, best.depth, N, law),
      extrapolated: laws.outsideTheData(shape.depth, N, law) !== null,
      step_time: laws.stepTime(shape.depth, best.depth),
      decode_time: decodeSeconds(shape) / bestSeconds,
    }];
  });
}

// The public models nearest in block parameters, then in depth (dense ones only, sizes within a factor 3)
function nearestModels(shape, blocks, models) {
  const size = Number(blocks);
  const near = models.filter((model) => model.dense && (model.published_total ?? Infinity) > size / 3 &&
    1 / 3 < model.block / size && model.block / size < 3);
  const distance = (model) => Math.abs(Math.log(model.block / size)) + 0.3 * Math.abs(Math.log(model.depth / shape.depth));
  return near.map((model) => ({ model, far: distance(model) })).sort((a, b) => a.far - b.far).slice(0, 3).map(({ model }) => model);
}
