// Hugging Face config.json in and out (deepwide.shape's config, families and the checks of Shape).
// What each family is comes from constants.py; only the rules that are programs in Python are programs here.
import { Float } from "./json.js";
import { pythonRepr, Refusal } from "./numbers.js";

const isWhole = (value) => typeof value === "bigint" || (typeof value === "number" && Number.isInteger(value));
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value) && !(value instanceof Float);
const isTruthy = (value) => {
  if (Array.isArray(value)) return value.length > 0;
  if (value instanceof Float) return value.value !== 0;
  return isObject(value) ? Object.keys(value).length > 0 : Boolean(value);
};
const isNothing = (value) => value === null || value === undefined;
const own = (object, key) => (Object.hasOwn(object, key) ? object[key] : undefined);

function pythonText(value) {
  if (isNothing(value)) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  return String(value);
}

export function quoted(value, most = 40) {
  if (Array.isArray(value)) return "a list";
  if (isObject(value)) return "an object";
  return pythonRepr([...pythonText(value)].slice(0, most).join(""));
}

// ---- what keys of single families decide

function flag(known, key) {
  const value = own(known, key) ?? false;
  if (typeof value !== "boolean") throw new Refusal(`${key} must be true or false, not ${quoted(value)}.`);
  return value;
}

function whole(value, name, { most = 10 ** 9, zero = 0 } = {}) {
  if (!isWhole(value) || value < 0 || value > most) {
    throw new Refusal(`${name} must be a whole number from 0 to ${most}, not ${quoted(value)}.`);
  }
  return Number(value) || zero;
}

const layersOf = (fields) => whole(fields.depth, "the number of layers", { most: 100_000 });
const range = (count) => Array.from({ length: count }, (_, i) => i);

function readAttentionBias(known) {
  const bias = flag(known, "attention_bias");
  return { qkv_bias: bias, out_bias: bias };
}

function readWindow(known, fields) {
  const window = own(known, "sliding_window");
  return isTruthy(window) ? { window, sliding_layers: range(layersOf(fields)) } : {};
}

function readLayerTypes(known, fields, isSliding) {
  const SLIDING = "sliding_attention";
  let kinds = own(known, "layer_types");
  if (isNothing(kinds)) kinds = range(layersOf(fields)).map((i) => (isSliding(i) ? SLIDING : "full_attention"));
  if (!Array.isArray(kinds) || kinds.some((kind) => kind !== SLIDING && kind !== "full_attention")) {
    throw new Refusal("layer_types must list 'sliding_attention' or 'full_attention' for each layer.");
  }
  if (kinds.length !== layersOf(fields)) throw new Refusal(`layer_types names ${kinds.length} layers, but there are ${layersOf(fields)}.`);
  const windowed = range(kinds.length).filter((i) => kinds[i] === SLIDING);
  return windowed.length ? { window: own(known, "sliding_window"), sliding_layers: windowed } : {};
}

function readQwen(known, fields) {
  if (!flag(known, "use_sliding_window")) return {};
  const first = Object.hasOwn(known, "max_window_layers") ? known.max_window_layers : 28;
  return readLayerTypes(known, fields, (i) => i >= whole(first, "max_window_layers"));
}

const READS = {
  read_attention_bias: readAttentionBias,
  read_window: readWindow,
  read_qwen: readQwen,
  read_llama: (known) => ({ ...readAttentionBias(known), ff_bias: flag(known, "mlp_bias") }),
  read_qwen3: (known, fields) => ({ ...readAttentionBias(known), ...readQwen(known, fields) }),
  read_gemma2: (known, fields) => ({ ...readAttentionBias(known), ...readLayerTypes(known, fields, (i) => i % 2 === 0) }),
  read_gemma3(known, fields) {
    const every = whole(Object.hasOwn(known, "sliding_window_pattern") ? known.sliding_window_pattern : 6, "sliding_window_pattern", { zero: 1 });
    return { ...readAttentionBias(known), ...readLayerTypes(known, fields, (i) => (i + 1) % every !== 0) };
  },
  read_opt(known, fields) {
    const bias = flag(known, "enable_bias");
    const narrow = own(known, "word_embed_proj_dim");
    return {
      qkv_bias: bias,
      out_bias: bias,
      ff_bias: bias,
      norm: flag(known, "layer_norm_elementwise_affine") ? "layernorm" : "none",
      final_norm: flag(known, "do_layer_norm_before") && !flag(known, "_remove_final_layer_norm"),
      embedding_width: narrow === fields.width ? null : narrow,
    };
  },
  read_falcon(known, fields) {
    const bias = flag(known, "bias");
    const isNew = flag(known, "new_decoder_architecture");
    const parallel = flag(known, "parallel_attn");
    const given = own(known, "num_ln_in_parallel_attn");
    const norms = isTruthy(given) ? given : isNew ? 2 : 1;
    let kv = fields.heads;
    if (isNew) kv = Object.hasOwn(known, "num_kv_heads") ? known.num_kv_heads : fields.heads;
    else if (flag(known, "multi_query")) kv = 1;
    return {
      kv_heads: kv,
      block_norms: parallel ? norms : 2,
      positions: flag(known, "alibi") ? "alibi" : "rotary",
      qkv_bias: bias,
      out_bias: bias,
      ff_bias: bias,
    };
  },
  read_phi: (known) => ({ qk_norm: flag(known, "qk_layernorm") ? "head" : "none" }),
  read_stablelm(known) {
    if (flag(known, "qk_layernorm")) throw new Refusal("qk_layernorm is not supported for StableLM configs.");
    return { qkv_bias: flag(known, "use_qkv_bias"), block_norms: flag(known, "use_parallel_residual") ? 1 : 2 };
  },
  read_mixtral(known, fields) {
    const experts = { experts: own(known, "num_local_experts"), active: own(known, "num_experts_per_tok"), width: fields.ff_width };
    return { ...readWindow(known, fields), experts };
  },
  read_qwen3_moe(known, fields) {
    const step = whole(own(known, "decoder_sparse_step"), "decoder_sparse_step", { zero: 1 });
    const listed = isTruthy(own(known, "mlp_only_layers")) ? known.mlp_only_layers : [];
    if (!Array.isArray(listed) || !listed.every((layer) => isWhole(layer) || typeof layer === "boolean")) {
      throw new Refusal("mlp_only_layers must be a list of layer numbers.");
    }
    const dense = new Set(listed.map(Number));
    const experts = {
      experts: own(known, "num_experts") ?? own(known, "num_local_experts") ?? 128,
      active: own(known, "num_experts_per_tok"),
      width: own(known, "moe_intermediate_size"),
      dense_layers: range(layersOf(fields)).filter((i) => dense.has(i) || (i + 1) % step),
    };
    const windowed = flag(known, "use_sliding_window");
    return { ...readAttentionBias(known), experts, ...(windowed ? readWindow(known, fields) : {}) };
  },
  read_glm4_moe(known, fields) {
    const first = Math.min(whole(own(known, "first_k_dense_replace"), "first_k_dense_replace"), layersOf(fields));
    const experts = {
      experts: own(known, "n_routed_experts"),
      active: own(known, "num_experts_per_tok"),
      width: own(known, "moe_intermediate_size"),
      shared: own(known, "n_shared_experts") ?? null,
      dense_layers: range(first),
    };
    return { qkv_bias: flag(known, "attention_bias"), qk_norm: flag(known, "use_qk_norm") ? "head" : "none", experts };
  },
  read_deepseek(known, fields) {
    if (flag(known, "mlp_bias")) throw new Refusal("mlp_bias is not supported for DeepSeek configs: no published model has it.");
    const first = Math.min(whole(own(known, "first_k_dense_replace"), "first_k_dense_replace"), layersOf(fields));
    const latent = {
      kv_rank: own(known, "kv_lora_rank"),
      query_rank: own(known, "q_lora_rank"),
      rope_dim: own(known, "qk_rope_head_dim"),
      nope_dim: own(known, "qk_nope_head_dim"),
      value_dim: own(known, "v_head_dim"),
    };
    const experts = {
      experts: own(known, "n_routed_experts"),
      active: own(known, "num_experts_per_tok"),
      width: own(known, "moe_intermediate_size"),
      shared: own(known, "n_shared_experts") ?? null,
      dense_layers: range(first),
    };
    const head_dim = whole(latent.nope_dim, "qk_nope_head_dim") + whole(latent.rope_dim, "qk_rope_head_dim");
    return { ...readAttentionBias(known), latent, experts, head_dim };
  },
};

const writeAttentionBias = (s) => ({ attention_bias: s.qkv_bias });
const writeWindow = (s) => ({ sliding_window: s.window });
const writeLayerTypes = (s) => ({ layer_types: range(s.depth).map(() => "full_attention"), sliding_window: s.window });

// A plan has no windows and no experts, so only dense families without them are written
const WRITES = {
  write_attention_bias: writeAttentionBias,
  write_llama: (s) => ({ attention_bias: s.qkv_bias, mlp_bias: s.ff_bias }),
  write_window: writeWindow,
  write_phi3: (s) => ({ ...writeWindow(s), pad_token_id: null }),
  write_qwen: () => ({}),
  write_qwen3: writeAttentionBias,
  write_gemma: (s) => ({ ...writeAttentionBias(s), ...writeLayerTypes(s) }),
  write_opt: (s) => ({
    enable_bias: s.qkv_bias,
    layer_norm_elementwise_affine: s.norm !== "none",
    do_layer_norm_before: s.final_norm,
    word_embed_proj_dim: s.embedding_width || s.width,
  }),
  write_falcon(s) {
    const multiQuery = s.kv_heads === 1 && s.block_norms === 1;
    return {
      new_decoder_architecture: !multiQuery,
      multi_query: multiQuery,
      num_kv_heads: multiQuery ? s.heads : s.kv_heads,
      num_ln_in_parallel_attn: s.block_norms,
      parallel_attn: true,
      alibi: s.positions === "alibi",
      bias: s.qkv_bias,
    };
  },
  write_gptj: (s) => ({ rotary_dim: Math.min(64, s.head_dim) }),
  write_phi: (s) => ({ qk_layernorm: s.qk_norm === "head" }),
  write_stablelm: (s) => ({ use_qkv_bias: s.qkv_bias, use_parallel_residual: s.block_norms === 1 }),
};

// ---- Shape's checks

const POSITIVE_FIELDS = ["depth", "width", "heads", "kv_heads", "head_dim", "vocab", "context", "embedding_width", "window"];
const NATURAL_FIELDS = ["ff_width", "block_norms", "extra_positions", "residual_scales"];
const FLAG_FIELDS = ["tied", "final_norm", "embedding_norm", "qkv_bias", "out_bias", "ff_bias", "head_bias"];
const MAY_BE_ABSENT = ["embedding_width", "window", "experts", "latent"];
const PARTS = {
  experts: [["experts", 1], ["active", 1], ["width", 1], ["shared", 0]],
  latent: [["kv_rank", 1], ["query_rank", 1, true], ["rope_dim", 1], ["nope_dim", 1], ["value_dim", 1]],
};

function checkWhole(value, name, least, most) {
  const refuse = (what) => {
    throw new Refusal(`${name}: input should be ${what}, not ${quoted(value)}.`);
  };
  if (!isWhole(value)) refuse("a valid integer");
  if (value < least) refuse(`greater than or equal to ${least}`);
  if (value > most) refuse(`less than or equal to ${most}`);
  return Number(value);
}

// A Shape from fields, its gaps filled and its parts checked, or the sentence that Shape.of raises
function makeShape(given, constants) {
  const most = constants.largest;
  const fields = Object.fromEntries(Object.entries(given).filter(([, value]) => !isNothing(value)));
  const isPositive = (value) => isWhole(value) && value >= 1 && value <= most;
  const width = fields.width;
  if (isPositive(width)) {
    const divided = (parts, name) => {
      if (width % parts) throw new Refusal(`width (${width}) is not a multiple of ${name} (${parts}): give heads and head_dim both.`);
      return width / parts;
    };
    if (!("heads" in fields) && !("head_dim" in fields)) fields.head_dim = width % 64 === 0 ? 64 : width;
    if (!("heads" in fields) && isPositive(fields.head_dim)) fields.heads = divided(fields.head_dim, "head_dim");
    if (!("head_dim" in fields) && isPositive(fields.heads)) fields.head_dim = divided(fields.heads, "heads");
    fields.kv_heads ??= fields.heads;
    fields.ff_width ??= (fields.ff ?? "plain") === "plain" ? 4 * width : Math.ceil((8 * width) / 3);
  }
  const shape = {};
  for (const name of Object.keys(constants.shape)) {
    const value = fields[name];
    if (POSITIVE_FIELDS.includes(name) && !(MAY_BE_ABSENT.includes(name) && isNothing(value))) {
      shape[name] = value === undefined && ["vocab", "context"].includes(name) ? constants.shape[name] : checkWhole(value, name, 1, most);
    } else if (NATURAL_FIELDS.includes(name)) {
      shape[name] = value === undefined && name !== "ff_width" ? constants.shape[name] : checkWhole(value, name, 0, most);
    } else if (FLAG_FIELDS.includes(name)) {
      shape[name] = value === undefined ? constants.shape[name] : value;
      if (typeof shape[name] !== "boolean") throw new Refusal(`${name}: input should be a valid boolean, not ${quoted(value)}.`);
    } else if (name in PARTS && !isNothing(value)) {
      shape[name] = checkPart(name, value, most);
    } else shape[name] = value ?? constants.shape[name];
  }
  checkFit(shape);
  return shape;
}

function checkPart(name, given, most) {
  const part = { ...given, ...(name === "experts" ? { shared: given.shared === undefined ? 0 : given.shared, dense_layers: given.dense_layers ?? [] } : {}) };
  for (const [field, least, optional] of PARTS[name]) {
    if (optional && isNothing(part[field])) part[field] = null;
    else part[field] = checkWhole(part[field], `${name}.${field}`, least, most);
  }
  if (name === "experts" && part.active > part.experts) throw new Refusal(`experts: ${part.active} active experts of ${part.experts}.`);
  return part;
}

function checkFit(s) {
  if (s.heads % s.kv_heads) throw new Refusal(`heads (${s.heads}) must be a multiple of kv_heads (${s.kv_heads}).`);
  for (const [name, layers] of [["sliding_layers", s.sliding_layers], ["experts.dense_layers", s.experts?.dense_layers ?? []]]) {
    if (layers.length && layers.at(-1) >= s.depth) throw new Refusal(`${name} must be rising layer numbers below depth ${s.depth}.`);
  }
  if (s.sliding_layers.length > 0 !== (s.window !== null)) throw new Refusal("window and sliding_layers go together.");
  if (s.ff_width === 0 && (s.ff_bias || s.experts)) {
    throw new Refusal("ff_width 0 means no feed-forward: then ff_bias is false and there are no experts.");
  }
  if (s.embedding_width === s.width) {
    throw new Refusal("embedding_width is for embeddings of another width than the blocks; leave it out.");
  }
  if (s.latent && s.head_dim !== s.latent.nope_dim + s.latent.rope_dim) {
    throw new Refusal("with latent attention, head_dim is nope_dim + rope_dim.");
  }
}

// ---- reading

const REQUIRED = ["depth", "width", "heads", "vocab"];

function readFamily(name, config, constants) {
  const family = constants.families[name];
  const standard = constants.families.llama.keys;
  const known = Object.create(null);
  for (const [key, value] of [...Object.entries(family.defaults), ...Object.entries(config)]) known[key] = value;
  for (const key of Object.keys(known)) if (isNothing(known[key])) delete known[key];
  const fields = { ...family.fixed };
  for (const [field, key] of Object.entries(family.keys)) {
    const names = [key, standard[field], ...(field === "width" ? ["n_embed"] : [])];
    const held = names.find((each) => !isNothing(own(config, each)));
    const value = held === undefined ? own(known, key) : config[held];
    if (!isNothing(value) && !family.fused.includes(field)) fields[field] = value;
  }
  const required = family.ff_may_be_absent ? REQUIRED : [...REQUIRED, "ff_width"];
  const missing = required.filter((field) => !(field in fields)).map((field) => `${field} (${family.keys[field]})`);
  missing.push(...family.needs.filter((key) => !Object.hasOwn(known, key)));
  if (missing.length) throw new Refusal(`this ${name} config lacks ${missing.join(", ")}.`);
  if (family.reads) Object.assign(fields, READS[family.reads](known, fields));
  return makeShape(fields, constants);
}

function notLlamaLike(why, constants) {
  return new Refusal(`this config is of no family deepwide knows and ${why}, so it cannot be counted as a Llama-like decoder; ` +
    `known are ${Object.keys(constants.families).join(", ")}.`);
}

function readUnknown(config, constants) {
  const rules = constants.config;
  const { aliases, optional_aliases: optional, not_llama_like: others, layer_kinds: kinds, attention, llama_like: llama } = rules;
  for (const [what, keys] of Object.entries(others)) {
    const key = keys.find((each) => isTruthy(own(config, each)));
    if (key) throw notLlamaLike(`has ${what} (${key})`, constants);
  }
  for (const key of kinds) {
    const listed = Array.isArray(own(config, key)) ? config[key] : [];
    const other = listed.find((kind) => !attention.includes(kind) && isTruthy(kind));
    if (other !== undefined) throw notLlamaLike(`has layers of the kind ${quoted(other)} (${key})`, constants);
  }
  const fields = { ...llama };
  for (const [field, keys] of [...Object.entries(aliases), ...Object.entries(optional)]) {
    const key = keys.find((each) => !isNothing(own(config, each)));
    if (key === undefined) continue;
    if (Array.isArray(config[key])) throw notLlamaLike(`gives ${field} per layer, as a list`, constants);
    fields[field] = config[key];
  }
  fields.tied ??= false;
  const first = (keys) => keys.map((key) => own(config, key)).find((value) => !isNothing(value));
  const activation = first(rules.activation_keys);
  if (rules.plain_activations.includes(activation)) fields.ff = "plain";
  for (const [key, parts] of Object.entries(rules.bias_keys)) {
    if (own(config, key) === true) for (const part of parts) fields[part] = true;
  }
  if (rules.qk_norm_keys.some((key) => own(config, key) === true)) fields.qk_norm = "head";
  const missing = Object.keys(aliases).filter((field) => !(field in fields));
  if (missing.length) {
    throw new Refusal(`this config is of no family deepwide knows (${Object.keys(constants.families).join(", ")}) and lacks ${missing.join(", ")}: ` +
      `give ${missing.length === 1 ? "it" : "them"} as well.`);
  }
  const gate = typeof activation === "string" ? `, by its activation ${quoted(activation)}` : "";
  const biased = ["qkv_bias", "out_bias", "ff_bias"].filter((name) => fields[name]);
  const assumed = [
    `${fields.ff} feed-forward${gate}`,
    "two RMSNorms per layer",
    biased.length ? `biases ${biased.join(", ")}` : "no biases",
    "rotary positions",
    "attention in every layer",
  ];
  return { shape: makeShape(fields, constants), assumed };
}

// {shape, family (null if unknown), notes} of a parsed config
export function readConfig(given, constants) {
  const notes = [];
  let config = given;
  if (isObject(own(config, "text_config"))) {
    notes.push({ code: "language-model-only", text: `only the language model of this ${quoted(own(config, "model_type"))} config is counted` });
    const tied = own(config, "tie_word_embeddings");
    config = Object.assign(Object.create(null), isNothing(tied) ? {} : { tie_word_embeddings: tied }, config.text_config);
    if (isNothing(own(config, "tie_word_embeddings"))) delete config.tie_word_embeddings;
  }
  const given_name = own(config, "model_type");
  const name = typeof given_name === "string" ? own(constants.config.same_family, given_name) ?? given_name : given_name;
  if (constants.config.elsewhere.includes(name)) {
    throw new Refusal(`the page does not read the family ${name}; the command line counts it exactly: deepwide audit config.json.`);
  }
  if (typeof name === "string" && Object.hasOwn(constants.families, name)) return { shape: readFamily(name, config, constants), family: name, notes };
  const what = typeof name === "string" ? own(constants.config.no_transformers, name.toLowerCase()) : undefined;
  if (what) throw notLlamaLike(`has ${what} (model_type ${name})`, constants);
  const { shape, assumed } = readUnknown(config, constants);
  const unknown = isTruthy(name) ? `the family ${quoted(name)} is unknown` : "the config names no family (model_type)";
  notes.unshift({ code: "unknown-family", text: `${unknown}: counted as a Llama-like decoder, which may be far off` },
    { code: "assumed", text: `assumed: ${assumed.join(", ")}` });
  return { shape, family: null, notes };
}

// The config of a planned shape in a family's format, refused where the family cannot express it
export function writeConfig(shape, name, constants) {
  const family = constants.families[name];
  const config = { architectures: [family.architecture], model_type: name };
  for (const [field, key] of Object.entries(family.keys)) if (!family.fused.includes(field)) config[key] = shape[field];
  if (family.writes) Object.assign(config, WRITES[family.writes](shape));
  const cannot = (why) => new Refusal(`the ${name} family cannot express this shape: ${why}`);
  let reread;
  try {
    reread = readFamily(name, config, constants);
  } catch (error) {
    throw error instanceof Refusal ? cannot(error.message) : error;
  }
  const show = (value) => (typeof value === "string" ? pythonRepr(value) : pythonText(value));
  const wrong = Object.keys(constants.shape)
    .filter((field) => JSON.stringify(reread[field]) !== JSON.stringify(shape[field]))
    .map((field) => `${field} is ${show(shape[field])}, ${name} has ${show(reread[field])}`);
  if (family.square && shape.width % shape.heads) wrong.push(`heads (${shape.heads}) do not divide width (${shape.width}), as ${name} needs`);
  if (wrong.length) throw cannot(`${wrong.join("; ")}.`);
  return config;
}
