// Counting a shape (deepwide.shape): parameters, FLOPs, memory. A shape is an object with Shape's fields.
//
// It is done twice: in BigInt, exactly, for what is reported; and in floats (`realCounter`) for the planner's search,
// with numpy's operations in numpy's order. All shapes here are decoders with a head for tokens, the only kind that a
// config.json or a plan describes.
import { divide } from "./numbers.js";

const NORM_VECTORS = { layernorm: 2n, rmsnorm: 1n, none: 0n };
const SIZES = ["depth", "width", "heads", "kv_heads", "head_dim", "ff_width", "vocab", "context"];

// The same shape with its sizes as exact integers
export function exact(shape) {
  const sizes = Object.fromEntries(SIZES.map((name) => [name, BigInt(shape[name])]));
  return { ...shape, ...sizes };
}

const expertLayers = (s) => (s.experts ? s.depth - BigInt(s.experts.dense_layers.length) : 0n);

function attentionMatrices(s) {
  const d = s.width;
  const h = s.heads;
  if (!s.latent) {
    const q = h * s.head_dim;
    const kv = s.kv_heads * s.head_dim;
    return d * (q + 2n * kv) + q * d;
  }
  const [rank, query, rope, nope, value] = latentSizes(s);
  const queries = s.latent.query_rank ? query * (d + h * s.head_dim) : d * h * s.head_dim;
  const keyValue = d * (rank + rope) + rank * h * (nope + value);
  return queries + keyValue + h * value * d;
}

function latentSizes(s) {
  const m = s.latent;
  return [BigInt(m.kv_rank), BigInt(m.query_rank ?? 0), BigInt(m.rope_dim), BigInt(m.nope_dim), BigInt(m.value_dim)];
}

function attentionParams(s) {
  const norm = NORM_VECTORS[s.norm];
  if (s.latent) {
    const [rank, query, rope] = latentSizes(s);
    const ranks = query + rank;
    const biases = BigInt(s.qkv_bias) * (ranks + rope) + BigInt(s.out_bias) * s.width;
    return attentionMatrices(s) + biases + norm * ranks;
  }
  const q = s.heads * s.head_dim;
  const kv = s.kv_heads * s.head_dim;
  const biases = BigInt(s.qkv_bias) * (q + 2n * kv) + BigInt(s.out_bias) * s.width;
  const own = s.qk_norm === "none" ? 0n : s.qk_norm === "head" ? 2n * s.head_dim : q + kv;
  return attentionMatrices(s) + biases + norm * own;
}

function feedForwardParams(s, f) {
  const into = s.ff === "gated" ? 2 : 1;
  return BigInt(into + 1) * s.width * f + BigInt(s.ff_bias) * (BigInt(into) * f + s.width);
}

export function countParams(s) {
  const d = s.width;
  const layers = s.depth;
  const norm = NORM_VECTORS[s.norm];
  const narrow = s.embedding_width === null ? d : BigInt(s.embedding_width);
  const projections = s.embedding_width === null ? 0n : 2n * narrow * d;
  const moe = s.experts;
  const routed = expertLayers(s);
  const expert = moe ? feedForwardParams(s, BigInt(moe.width)) : 0n;
  const embedding = s.vocab * narrow + projections + BigInt(s.embedding_norm) * norm * d;
  const positions = s.positions === "learned" ? (s.context + BigInt(s.extra_positions)) * d : 0n;
  const attention = layers * attentionParams(s);
  let feedForward = (layers - routed) * feedForwardParams(s, s.ff_width);
  let inactive = 0n;
  if (moe) {
    const shared = moe.shared ? feedForwardParams(s, BigInt(moe.shared) * BigInt(moe.width)) : 0n;
    feedForward += routed * (BigInt(moe.experts) * expert + shared + d * BigInt(moe.experts));
    inactive = routed * BigInt(moe.experts - moe.active) * expert;
  }
  const norms = (layers * BigInt(s.block_norms) + BigInt(s.final_norm)) * norm * d + layers * BigInt(s.residual_scales);
  const head = (s.tied ? 0n : s.vocab * narrow) + BigInt(s.head_bias) * s.vocab;
  const block = attention + feedForward + norms;
  const total = embedding + positions + block + head;
  return { embedding, positions, attention, feedForward, norms, head, inactive, block, total, active: total - inactive };
}

// Query–key pairs of one layer under the causal mask
const triangle = (T) => (T * (T + 1n)) / 2n;

// Training FLOPs of one sequence of the full context, causal convention
export function causalSequenceFlops(s) {
  const T = s.context;
  const values = s.latent ? BigInt(s.latent.value_dim) : s.head_dim;
  const sliding = BigInt(s.sliding_layers.length);
  const whole = triangle(T);
  let pairs = (s.depth - sliding) * whole;
  if (s.window) {
    const left = T - (T < BigInt(s.window) ? T : BigInt(s.window));
    pairs += sliding * (whole - triangle(left));
  }
  const narrow = s.embedding_width === null ? s.width : BigInt(s.embedding_width);
  const lookup = narrow * s.vocab;
  const inOut = s.embedding_width === null ? 0n : 2n * narrow * s.width;
  const projections = 2n * (s.depth * T) * attentionMatrices(s);
  const attention = 2n * pairs * s.heads * (s.head_dim + values);
  const matrices = BigInt(s.ff === "gated" ? 3 : 2);
  const routed = expertLayers(s);
  let weights = (s.depth - routed) * (matrices * s.width * s.ff_width);
  if (s.experts) {
    const { experts, active, shared, width } = s.experts;
    weights += routed * s.width * (matrices * BigInt(width) * BigInt(active + shared) + BigInt(experts));
  }
  const feedForward = 2n * (T * weights);
  const head = 2n * (T * (lookup + inOut));
  return 3n * (projections + attention + feedForward + head);
}

// The same per token, as Python divides integers
export const causalTrainingFlops = (s) => divide(causalSequenceFlops(s), s.context);

// Numbers cached per token and layer
export function cacheElements(s) {
  return s.latent ? BigInt(s.latent.kv_rank) + BigInt(s.latent.rope_dim) : 2n * s.kv_heads * s.head_dim;
}

// Bytes to train the shape with Adam, mixed precision, one sequence of the full context
export function trainingMemory(s, precision) {
  const P = countParams(s).total;
  const T = s.context;
  const finalNorm = BigInt(s.final_norm && s.norm !== "none");
  const elements = T * (s.depth * layerElements(s) + (finalNorm + 1n) * s.width);
  return {
    state: BigInt(precision.weights + precision.gradients + precision.optimiser) * P,
    perSequence: BigInt(precision.activation) * elements + BigInt(precision.activation + 4) * T * s.vocab,
  };
}

const upTo = (amount, parts) => (amount + parts - 1n) / parts;

// Parameters of one device of a pipeline stage of a dense shape (deepwide.shape.devices)
function stageParams(s, t, p, stage) {
  const d = s.width;
  const norm = NORM_VECTORS[s.norm];
  const q = (s.heads / t) * s.head_dim;
  const kv = (s.kv_heads < t ? 1n : s.kv_heads / t) * s.head_dim;
  const f = s.ff_width / t;
  const into = s.ff === "gated" ? 2n : 1n;
  const own = { none: 0n, head: 2n * s.head_dim, full: q + kv }[s.qk_norm];
  const attention = d * (2n * q + 2n * kv) + BigInt(s.qkv_bias) * (q + 2n * kv) + BigInt(s.out_bias) * d + norm * own;
  const feedForward = (into + 1n) * d * f + BigInt(s.ff_bias) * (into * f + d);
  const layer = attention + feedForward + BigInt(s.block_norms) * norm * d + BigInt(s.residual_scales);
  const rows = upTo(s.vocab, t);
  let total = (s.depth / p) * layer;
  if (stage === 0n) {
    const positions = s.positions === "learned" ? (s.context + BigInt(s.extra_positions)) * d : 0n;
    total += rows * d + positions + BigInt(s.embedding_norm) * norm * d;
  }
  if (stage === p - 1n) {
    const copy = !s.tied || p > 1n ? rows * d : 0n;
    total += BigInt(s.final_norm) * norm * d + copy + BigInt(s.head_bias) * rows;
  }
  return total;
}

// Bytes on the fullest device of a dense shape that is split: training by one sequence per micro-batch, and serving;
// null where key/value heads neither divide over the ranks nor the reverse
export function deviceShare(s, split, precision, weightBytes, batch) {
  const [t, p, z] = [split.tensor_parallel, split.pipeline_stages, split.data_parallel].map(BigInt);
  if (s.kv_heads % t && t % s.kv_heads) return null;
  const T = s.context;
  const layers = s.depth / p;
  const params = Array.from({ length: Number(p) }, (_, stage) => stageParams(s, t, p, BigInt(stage)));
  const perElement = BigInt(precision.activation) * T;
  const stream = upTo(s.width, t);
  const layer = upTo(perElement * layerElements(s), t);
  const ends = (BigInt(s.final_norm && s.norm !== "none") + 1n) * stream * perElement;
  let fullest = null;
  params.forEach((P, stage) => {
    const last = stage === params.length - 1;
    const activations = (p - BigInt(stage)) * layers * layer + (last ? ends : 0n);
    const logits = last ? BigInt(precision.activation + 4) * T * upTo(s.vocab, t) : 0n;
    const state = ["weights", "gradients", "optimiser"].reduce(
      (sum, part, i) => sum + BigInt(precision[part]) * (split.zero >= 3 - i ? upTo(P, z) : P), 0n);
    const training = state + activations + logits;
    if (fullest === null || training > fullest.training) fullest = { state, activations: activations + logits, training };
  });
  const kv = 2n * (s.kv_heads < t ? 1n : s.kv_heads / t) * s.head_dim;
  const cache = BigInt(batch) * 2n * layers * T * kv;
  const most = params.reduce((one, other) => (other > one ? other : one));
  return { ...fullest, cache, serving: weightBytes(most) + cache };
}

// Numbers that one dense layer keeps per token for its backward pass; a plan has no other layers
function layerElements(s) {
  const d = s.width;
  const q = s.heads * s.head_dim;
  const kv = s.kv_heads * s.head_dim;
  const norms = BigInt(s.block_norms);
  const stream = s.norm === "none" ? 2n : norms + (norms < 2n ? norms : 2n);
  const attention = 2n * q + 2n * kv + (s.qk_norm === "none" ? 0n : q + kv);
  return stream * d + attention + (s.ff === "gated" ? 4n : 2n) * s.ff_width;
}

// Block parameters, total parameters, training FLOPs per token and cached numbers of dense shapes of one template, as
// functions of depth, width, heads, key/value heads, head width and feed-forward width. Called 100,000 times per plan,
// so nothing is allocated.
export function realCounter(template) {
  const norm = Number(NORM_VECTORS[template.norm]);
  const [qkvBias, outBias, ffBias, headBias] = ["qkv_bias", "out_bias", "ff_bias", "head_bias"].map((name) => Number(template[name]));
  const { vocab, context, block_norms: blockNorms, residual_scales: scales, qk_norm: qkNorm } = template;
  const [finalNorm, embeddingNorm] = [Number(template.final_norm), Number(template.embedding_norm)];
  const positions = template.positions === "learned" ? context + template.extra_positions : 0;
  const narrowWidth = template.embedding_width;
  const into = template.ff === "gated" ? 2 : 1;
  const pairs = Number(triangle(BigInt(context)));
  const matrices = (d, h, kvHeads, headDim) => {
    const q = h * headDim;
    return d * (q + 2 * (kvHeads * headDim)) + q * d;
  };
  const block = (L, d, h, kvHeads, headDim, f) => {
    const q = h * headDim;
    const kv = kvHeads * headDim;
    const biases = qkvBias * (q + 2 * kv) + outBias * d;
    const own = qkNorm === "none" ? 0 : qkNorm === "head" ? 2 * headDim : q + kv;
    const attention = L * (matrices(d, h, kvHeads, headDim) + biases + norm * own);
    const feedForward = L * ((into + 1) * d * f + ffBias * (into * f + d));
    return attention + feedForward + ((L * blockNorms + finalNorm) * norm * d + L * scales);
  };
  return {
    block,
    total(L, d, h, kvHeads, headDim, f) {
      const narrow = narrowWidth === null ? d : narrowWidth;
      const projections = narrowWidth === null ? 0 : 2 * narrow * d;
      const embedding = vocab * narrow + projections + embeddingNorm * norm * d;
      const head = (template.tied ? 0 : vocab * narrow) + headBias * vocab;
      return embedding + positions * d + block(L, d, h, kvHeads, headDim, f) + head;
    },
    trainingFlops(L, d, h, kvHeads, headDim, f) {
      const narrow = narrowWidth === null ? d : narrowWidth;
      const inOut = narrowWidth === null ? 0 : 2 * narrow * d;
      const projections = 2 * (L * context) * matrices(d, h, kvHeads, headDim);
      const attention = 2 * (L * pairs) * h * (headDim + headDim);
      const feedForward = 2 * (context * (L * ((into + 1) * d * f)));
      return (3 * (projections + attention + feedForward + 2 * (context * (narrow * vocab + inOut)))) / context;
    },
    cached: (kvHeads, headDim) => 2 * kvHeads * headDim,
  };
}
