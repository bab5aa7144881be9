"""Memory: the formulas against what torch keeps for the backward pass of a lean block, and a real key/value cache.

Tensor names carry their shape: B batch, T tokens, D width, F feed-forward, H heads, K head width.
"""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.shape import FAMILIES, Shape, inference_memory, training_memory, write_config
from deepwide.shape.family import LLAMA_LIKE

torch = pytest.importorskip("torch", reason="needs the train extra: pip install 'deepwide[dev]'")
F, nn = torch.nn.functional, torch.nn

BARE: dict[str, Any] = {"qkv_bias": False, "out_bias": False, "ff_bias": False, "depth": 1, "width": 64, "vocab": 11}
LATENT = {"kv_rank": 24, "query_rank": 40, "rope_dim": 8, "nope_dim": 16, "value_dim": 12}
MOE = {"experts": 5, "active": 2, "width": 24}


class Block(nn.Module):  # type: ignore[name-defined,misc]
    """One layer as lean as torch lets it be: fused norms, fused attention, nothing kept twice.

    LayerNorm stands for every norm: torch's RMSNorm is fused on GPUs only and keeps one more copy on the CPU.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = s = shape
        d, q, kv = s.width, s.heads * s.head_dim, s.kv_heads * s.head_dim
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(s.block_norms))
        if m := s.latent:
            self.q_down, self.q_norm = nn.Linear(d, m.query_rank, False), nn.LayerNorm(m.query_rank)
            self.kv_down, self.kv_norm = nn.Linear(d, m.kv_rank + m.rope_dim, False), nn.LayerNorm(m.kv_rank)
            self.q_up = nn.Linear(m.query_rank, q, False)
            self.kv_up = nn.Linear(m.kv_rank, s.heads * (m.nope_dim + m.value_dim), False)
            self.out = nn.Linear(s.heads * m.value_dim, d, False)
        else:
            self.q, self.k, self.v = nn.Linear(d, q, False), nn.Linear(d, kv, False), nn.Linear(d, kv, False)
            self.out = nn.Linear(q, d, False)
            if s.qk_norm == "head":
                self.q_norm, self.k_norm = nn.LayerNorm(s.head_dim), nn.LayerNorm(s.head_dim)
        if moe := s.experts:
            self.router = nn.Linear(d, moe.experts, False)
            self.experts = nn.ModuleList(FeedForward(s, moe.width) for _ in range(moe.experts))
            self.shared = FeedForward(s, moe.width * moe.shared) if moe.shared else None
        else:
            self.feed_forward = FeedForward(s, s.ff_width)

    def forward(self, x_BTD: Any) -> Any:
        norms = list(self.norms)
        if len(norms) == 1:  # attention and feed-forward side by side, as in GPT-J
            h_BTD = norms[0](x_BTD)
            return x_BTD + self.attend(h_BTD) + self.feed(h_BTD)
        if len(norms) == 2:
            x_BTD = x_BTD + self.attend(norms[0](x_BTD))
            return x_BTD + self.feed(norms[1](x_BTD))
        x_BTD = x_BTD + norms[1](self.attend(norms[0](x_BTD)))  # before and after, as in Gemma 2
        return x_BTD + norms[3](self.feed(norms[2](x_BTD)))

    def attend(self, h_BTD: Any) -> Any:
        s, (B, T, _) = self.shape, h_BTD.shape
        if m := s.latent:
            q_BHTK = self.q_up(self.q_norm(self.q_down(h_BTD))).view(B, T, s.heads, -1).transpose(1, 2)
            low, k_rope = self.kv_down(h_BTD).split([m.kv_rank, m.rope_dim], dim=-1)
            both = self.kv_up(self.kv_norm(low.contiguous())).view(B, T, s.heads, -1).transpose(1, 2)
            k_nope, v_BHTK = both.split([m.nope_dim, m.value_dim], dim=-1)
            k_BHTK = torch.cat([k_nope, k_rope[:, None].expand(-1, s.heads, -1, -1)], dim=-1)
        else:
            q, k, v = (project(h_BTD).view(B, T, -1, s.head_dim) for project in (self.q, self.k, self.v))
            if s.qk_norm == "head":
                q, k = self.q_norm(q), self.k_norm(k)
            q_BHTK, k_BHTK, v_BHTK = (x.transpose(1, 2) for x in (q, k, v))
        a_BHTK = self.kernel(q_BHTK, k_BHTK, v_BHTK)
        return self.out(a_BHTK.transpose(1, 2).reshape(B, T, -1))

    def kernel(self, q: Any, k: Any, v: Any) -> Any:
        if self.shape.latent:  # torch has no fused kernel for values of another width than the keys
            return FusedAttention.apply(q, k, v)
        gqa = self.shape.kv_heads < self.shape.heads
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=gqa)

    def feed(self, h_BTD: Any) -> Any:
        moe = self.shape.experts
        if moe is None:
            return self.feed_forward(h_BTD)
        h_ND = h_BTD.flatten(0, 1)
        weight_NE, chosen_NE = self.router(h_ND).softmax(-1).topk(moe.active)
        out_ND = torch.zeros_like(h_ND) if self.shared is None else self.shared(h_ND)
        for number, expert in enumerate(self.experts):
            token, slot = (chosen_NE == number).nonzero(as_tuple=True)
            y = expert(h_ND[token]) * weight_NE[token, slot, None]
            out_ND = out_ND.index_put((token,), y, accumulate=True)  # index_add would keep y without need
        return out_ND.view_as(h_BTD)


class FusedAttention(torch.autograd.Function):  # type: ignore[name-defined,misc]
    """Keeps what FlashAttention keeps: queries, keys, values, the output and a number per head and token."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any) -> Any:
        scores = (q @ k.transpose(2, 3)).masked_fill(_future(q.shape[2]), float("-inf"))
        out = (scores.softmax(-1) @ v).transpose(1, 2).contiguous().transpose(1, 2)  # heads side by side
        ctx.save_for_backward(q, k, v, out, scores.logsumexp(-1))
        return out


class EagerBlock(Block):
    """Attention as plain products, softmax in 32 bits, as transformers' "eager"."""

    def kernel(self, q: Any, k: Any, v: Any) -> Any:
        scores_BHTT = (q @ k.transpose(2, 3)).masked_fill(_future(q.shape[2]), float("-inf"))
        return scores_BHTT.softmax(-1, dtype=torch.float32).to(v.dtype) @ v


class FeedForward(nn.Module):  # type: ignore[name-defined,misc]
    """Two matrices, or three with a gate."""

    def __init__(self, shape: Shape, f: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(shape.width, f, False), nn.Linear(f, shape.width, False)
        self.gate = nn.Linear(shape.width, f, False) if shape.ff == "gated" else None

    def forward(self, h: Any) -> Any:
        return self.down(F.gelu(self.up(h)) if self.gate is None else F.silu(self.gate(h)) * self.up(h))


_MASKS: dict[int, Any] = {}


def _future(T: int) -> Any:
    return _MASKS.setdefault(T, torch.ones(T, T, dtype=torch.bool).triu(1))


def saved_bytes(block: Any, x: Any, parameters: Any = None) -> int:
    """Bytes of the different storages autograd keeps for the backward pass, parameters and masks aside."""
    parameters = block.parameters() if parameters is None else parameters
    not_activations = {tensor.untyped_storage().data_ptr() for tensor in (*parameters, *_MASKS.values())}
    saved: dict[int, Any] = {}  # holds the tensors, so that no address is used twice

    def keep(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in not_activations:
            saved[storage.data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        out = block(x)
    del out
    return sum(tensor.untyped_storage().nbytes() for tensor in saved.values())


def layer_bytes(shape: Shape, B: int, T: int, **choices: Any) -> int:
    """One layer's activations by the formula: what a second layer adds."""
    one, two = (
        training_memory(shape.but(depth=depth, experts=shape.experts), batch=B, sequence=T, **choices).activations
        for depth in (1, 2)
    )
    return two - one


@pytest.mark.parametrize("T", [16, 96])
@pytest.mark.parametrize(
    ("fields", "small"),
    # `small`: numbers per token the formula leaves out. Each norm keeps a mean and a deviation, attention one
    # log-sum-exp a head.
    [
        pytest.param({"heads": 4}, 4 + 4, id="plain"),
        pytest.param({"heads": 4, "ff": "gated", "ff_width": 172}, 4 + 4, id="gated"),
        pytest.param({"heads": 4, "kv_heads": 1, "ff": "gated"}, 4 + 4, id="one key/value head"),
        pytest.param({"heads": 3, "head_dim": 40, "ff": "gated"}, 4 + 3, id="heads wider than the width"),
        pytest.param({"heads": 4, "block_norms": 1}, 2 + 4, id="side by side"),
        pytest.param({"heads": 4, "block_norms": 4}, 8 + 4, id="norms before and after"),
        # Two numbers for each head of queries and of keys.
        pytest.param({"heads": 4, "kv_heads": 2, "qk_norm": "head"}, 4 + 4 + 2 * (4 + 2), id="norms on heads"),
        # The latents' norms keep two each.
        pytest.param({"heads": 4, "head_dim": 24, "latent": LATENT}, 4 + 4 + 4, id="latent attention"),
    ],
)
def test_a_layer_keeps_what_the_formula_says_to_the_byte(fields: dict[str, Any], small: int, T: int) -> None:
    shape, B = Shape(**(BARE | fields)), 3
    torch.manual_seed(0)
    measured = saved_bytes(Block(shape), torch.randn(B, T, shape.width, requires_grad=True))
    assert measured == layer_bytes(shape, B, T, precision="fp32") + 4 * B * T * small


@pytest.mark.parametrize(
    ("experts", "ff"),
    [(MOE, "gated"), (MOE, "plain"), (MOE | {"shared": 2}, "gated"), (MOE | {"active": 5}, "gated")],
    ids=["gated", "plain", "shared experts", "all active"],
)
def test_a_mixture_keeps_a_token_once_per_expert_before_and_after(experts: dict[str, int], ff: str) -> None:
    """Whatever the routing: a token's input is gathered, and its output kept for the gradient of its weight.

    Left out, per token: the small ones of a dense block, and of the router its softmax (experts) with the chosen
    weights and their indices, of 8 bytes each.
    """
    shape, B, T = Shape(**(BARE | {"heads": 4, "ff": ff, "experts": experts})), 3, 32
    torch.manual_seed(0)
    measured = saved_bytes(Block(shape), torch.randn(B, T, shape.width, requires_grad=True))
    formula = layer_bytes(shape, B, T, precision="fp32")
    # per choice: its weight, and as 8-byte indices the expert's number, the token's and the place among the choices
    router = experts["experts"] + (1 + 2 * 3) * experts["active"]
    assert measured == formula + 4 * B * T * (4 + 4 + router)


@pytest.mark.parametrize(("precision", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_eager_attention_keeps_its_scores(precision: str, dtype: Any) -> None:
    """Softmax is kept in 32 bits, and once more in 16 when the values are."""
    shape, B, T = Shape(**(BARE | {"heads": 4})), 2, 80
    torch.manual_seed(0)
    x = torch.randn(B, T, shape.width, dtype=dtype, requires_grad=True)
    _future(T)
    measured = saved_bytes(EagerBlock(shape).to(dtype), x)
    formula = layer_bytes(shape, B, T, precision=precision, attention="eager")
    assert measured == formula + x.element_size() * B * T * 4  # the norms' means and deviations
    per_score = {"fp32": 4, "bf16": 4 + 2}[precision]
    flash = layer_bytes(shape, B, T, precision=precision, attention="flash")
    assert formula - flash == per_score * B * shape.heads * T * T


@st.composite
def networks(draw: st.DrawFn) -> dict[str, Any]:
    """Choices of a small network whose every part is as lean as the formula: no grouped heads, no rotation."""
    kind = draw(st.sampled_from(["decoder", "encoder", "encoder-decoder"]))
    head = "tokens" if kind == "encoder-decoder" else draw(st.sampled_from(["tokens", "class", "pair"]))
    fields: dict[str, Any] = {"kind": kind, "head": head, "classes": 0 if head == "tokens" else draw(st.integers(2, 5))}
    fields |= {"encoder_depth": draw(st.integers(1, 3)) if kind == "encoder-decoder" else 0}
    fields |= {"depth": draw(st.integers(1, 3)), "width": draw(st.integers(2, 20)), "vocab": 11, "context": 16}
    fields |= {"heads": draw(st.integers(1, 3)), "head_dim": draw(st.integers(2, 9)), "tied": draw(st.booleans())}
    fields |= {"ff": draw(st.sampled_from(["plain", "gated"])), "ff_width": draw(st.integers(0, 20))}
    fields |= {"positions": draw(st.sampled_from(["learned", "none"])), "norm_place": draw(st.sampled_from(PLACES))}
    return fields | {"norm": draw(st.sampled_from(["layernorm", "none"])), "final_norm": draw(st.booleans())}


PLACES = ["pre", "post", "peri"]


@settings(max_examples=60)
@given(networks(), st.integers(2, 16), st.integers(2, 16))
def test_whole_networks_of_every_kind_and_head_keep_what_the_formula_says_to_the_byte(
    fields: dict[str, Any], T: int, S: int
) -> None:
    """Left out per token: its number, of 8 bytes; two numbers of each norm and the log-sum-exp of each head."""
    from deepwide.model import Architecture, Transformer

    design, B = Architecture.of(**fields), 3
    s = design.shape
    two = s.kind == "encoder-decoder" or s.head == "pair"
    model = Transformer(design)
    tokens, source = (torch.zeros(B, length, dtype=torch.long) for length in (T, S))
    inputs = {"source_BS": source} if two else {}
    measured = saved_bytes(lambda x: model(x, **inputs), tokens, model.parameters())
    formula = training_memory(s, batch=B, sequence=T, source=S if two else None, precision="fp32").activations
    sublayers, norm = 2 if s.ff_width else 1, 0 if s.norm == "none" else 2 * (2 if design.norm_place == "peri" else 1)
    layer, final = sublayers * norm + s.heads, 2 if norm and s.final_norm else 0
    small = (T + S if s.head == "pair" else T) * (s.depth * layer + final)
    if s.kind == "encoder-decoder":
        small += T * s.depth * (norm + s.heads) + S * (s.encoder_depth * layer + final)
    assert measured == formula + 4 * B * small + 8 * tokens.numel() + (8 * source.numel() if two else 0)


@pytest.mark.parametrize("attention", ["flash", "eager"])
@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "encoder"},
        {"final_norm": False},
        {"head": "class", "classes": 3},
        {"kind": "encoder", "head": "pair", "classes": 3},
        {"kind": "encoder-decoder", "encoder_depth": 5},
        {"kind": "encoder-decoder", "encoder_depth": 5, "qk_norm": "head", "final_norm": False},
    ],
)
def test_the_printed_formula_gives_the_number(fields: dict[str, Any], recompute: bool, attention: str) -> None:
    """Read as a person would: · is a product, 2d is 2·d, and letters stand for what the legend says."""
    shape, T, S, B = Shape.of(depth=3, width=64, heads=4, kv_heads=2, vocab=11, **fields), 10, 7, 2
    two = shape.kind == "encoder-decoder" or shape.head == "pair"
    if shape.head == "pair":
        S = T  # or the scores of the two would need two formulas
    memory = training_memory(
        shape,
        batch=B,
        sequence=T,
        source=S if two else None,
        precision="bf16",
        attention=attention,
        recompute=recompute,
    )
    whole, *layers = memory.formula["activations"].split(", ")
    if ", S·a" in memory.formula["activations"]:
        whole, layers = f"{whole}, {layers[0]}", layers[1:]
    letters: dict[str, Any] = {"B": B, "T": T, "S": S, "L": 3, "E": 5, "d": 64, "q": 64, "kv": 32, "f": 256, "heads": 4}
    letters["max"] = max

    def value(formula: str) -> int:
        product = re.sub(r"(\d)([a-z])", r"\1*\2", formula.replace("·", "*"))
        return int(eval(product, {"__builtins__": {}}, letters))

    for layer in layers:
        name, formula, number = layer.split(" = ")
        assert value(formula) == int(number.replace(",", ""))
        letters[name] = value(formula)
    assert value(whole) == memory.activations


def test_only_decoders_for_tokens_have_a_cache_and_cross_attention_keeps_its_source() -> None:
    both = Shape(depth=3, encoder_depth=5, width=64, heads=4, kv_heads=2, kind="encoder-decoder")
    per_position = 2 * 2 * 2 * 16  # two bytes; keys and values of two heads
    assert inference_memory(both, batch=2, sequence=10, source=7).cache == 2 * per_position * 3 * (10 + 7)
    assert inference_memory(both).cache_bytes_per_token == 3 * per_position
    for fields in ({"kind": "encoder"}, {"head": "class", "classes": 2}, {"head": "pair", "classes": 2}):
        memory = inference_memory(Shape.of(depth=3, width=64, **fields))
        assert (memory.cache, memory.cache_bytes_per_token, memory.total) == (0, 0, memory.weights)


def test_logits_of_classes_are_one_row_per_sequence() -> None:
    shape = Shape(depth=2, width=64, head="class", classes=5)
    assert training_memory(shape, batch=3, precision="fp32").logits == (4 + 4) * 3 * 5


def test_recomputing_keeps_each_layers_input_and_one_layer() -> None:
    shape = Shape(depth=7, width=64, heads=4, context=32)
    layer = layer_bytes(shape, 2, 32, precision="fp32")
    recomputed = training_memory(shape, batch=2, precision="fp32", recompute=True).activations
    whole = training_memory(shape, batch=2, precision="fp32").activations
    ends = 4 * 2 * 32 * 2 * 64  # the final norm's input and the head's
    assert whole == 7 * layer + ends
    assert recomputed == 7 * 4 * 2 * 32 * 64 + layer + ends


def test_dense_layers_of_a_mixture_are_counted_as_dense() -> None:
    moe = {"experts": 8, "active": 2, "width": 16}
    mixed = Shape(depth=5, width=64, heads=4, experts=moe | {"dense_layers": (0, 1)})  # type: ignore[arg-type]
    dense, routed = mixed.but(experts=None), mixed.but(experts=moe)
    a, m = (layer_bytes(shape, 1, 8) for shape in (dense, routed))
    ends = 2 * 8 * 2 * 64
    assert training_memory(mixed, sequence=8).activations == 2 * a + 3 * m + ends
    assert training_memory(mixed, sequence=8, recompute=True).activations == 2 * 8 * 5 * 64 + max(a, m) + ends


@pytest.mark.parametrize(("precision", "per_parameter"), [("mixed", 16), ("bf16", 8), ("fp32", 16)])
def test_adams_state_is_a_fixed_number_of_bytes_per_parameter(precision: str, per_parameter: int) -> None:
    memory = training_memory(Shape(depth=12, width=768), precision=precision)
    assert (
        memory.weights + memory.gradients + memory.optimiser == per_parameter * Shape(depth=12, width=768).total_params
    )
    assert memory.total == memory.weights + memory.gradients + memory.optimiser + memory.activations + memory.logits


def test_adams_state_is_what_torch_allocates() -> None:
    model = nn.Linear(30, 20)
    optimiser = torch.optim.Adam(model.parameters())
    model(torch.randn(2, 30)).sum().backward()
    optimiser.step()
    params = sum(p.numel() for p in model.parameters())
    state = sum(t.nbytes for s in optimiser.state.values() for t in s.values() if t.ndim)
    memory = training_memory(Shape(depth=1, width=64), precision="fp32")
    ratio = memory.optimiser / memory.weights
    assert state == ratio * sum(p.nbytes for p in model.parameters()) == 8 * params


class _Loss(nn.Module):  # type: ignore[name-defined,misc]
    def __init__(self, targets: Any) -> None:
        super().__init__()
        self.targets = targets

    def forward(self, logits: Any) -> Any:
        return F.cross_entropy(logits, self.targets)


def test_the_loss_keeps_logits_and_their_softmax_in_32_bits() -> None:
    B, T, V = 2, 5, 300
    logits = torch.randn(B * T, V, requires_grad=True)
    targets = torch.zeros(B * T, dtype=torch.long)
    saved = saved_bytes(_Loss(targets), logits)
    log_softmax = 4 * B * T * V
    assert saved == log_softmax + targets.nbytes + 4  # and the total weight
    memory = training_memory(Shape(depth=1, width=64, vocab=V), batch=B, sequence=T, precision="fp32")
    assert memory.logits == logits.nbytes + log_softmax


@given(st.integers(1, 9), st.integers(1, 99), st.booleans(), st.sampled_from(["flash", "eager"]))
def test_activations_grow_with_batch_and_sequence(B: int, T: int, recompute: bool, attention: Any) -> None:
    shape = Shape(depth=3, width=64)
    one = training_memory(shape, batch=1, sequence=T, recompute=recompute, attention=attention)
    many = training_memory(shape, batch=B, sequence=T, recompute=recompute, attention=attention)
    longer = training_memory(shape, batch=1, sequence=T + 1, recompute=recompute, attention=attention)
    assert many.activations == B * one.activations
    assert longer.activations > one.activations
    assert many.logits == B * one.logits
    assert many.weights == one.weights


def test_the_formula_of_each_number_is_shown_and_right() -> None:
    shape = Shape(depth=3, width=64, heads=4, context=10)
    memory = training_memory(shape, batch=2, precision="fp32", attention="eager")
    a = 4 * 64 + 2 * 64 + 2 * 64 + 2 * 256 + 4 * 10
    assert memory.formula["activations"] == f"4·B·T·(L·a + 2d), a = 4d + 2q + 2kv + 2f + heads·T = {a:,}"
    assert memory.activations == 4 * 2 * 10 * (3 * a + 2 * 64)
    assert set(memory.formula) == {"weights", "gradients", "optimiser", "activations", "logits"}


@pytest.mark.parametrize(
    ("family", "fields"),
    [
        ("llama", {"heads": 6, "kv_heads": 2, "head_dim": 10, "width": 60}),
        ("gpt2", {"heads": 4, "width": 64, "positions": "learned"}),
        ("qwen3", {"heads": 4, "kv_heads": 2, "head_dim": 24, "width": 64}),
    ],
)
def test_the_cache_is_what_transformers_allocates(family: str, fields: dict[str, Any]) -> None:
    transformers = pytest.importorskip("transformers", reason="needs the dev extra: pip install 'deepwide[dev]'")
    B, T = 2, 7
    fixed = FAMILIES[family].fixed | {"depth": 3, "vocab": 50, "context": 16, "tied": True, "ff_width": 40}
    shape = Shape.of(**(fixed | fields))
    config = write_config(shape, family)
    del config["architectures"]
    model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(**config)).eval()
    with torch.no_grad():
        cache = model(torch.zeros(B, T, dtype=torch.long), use_cache=True).past_key_values
    measured = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
    memory = inference_memory(shape, batch=B, sequence=T, cache_precision="fp32", precision="fp32")
    assert memory.cache == measured
    assert memory.cache_bytes_per_token * B * T == measured
    assert memory.weights == sum(p.nbytes for p in model.parameters())
    assert memory.total == memory.weights + memory.cache


def test_llama_3s_cache_is_128_kib_a_token() -> None:
    """2 (keys, values) × 32 layers × 8 heads × 128 × 2 bytes."""
    shape = Shape(**(LLAMA_LIKE | {"depth": 32, "width": 4096, "heads": 32, "kv_heads": 8, "ff_width": 14336}))
    assert inference_memory(shape).cache_bytes_per_token == 128 * 1024


def test_deepseeks_cache_is_the_latent_and_the_rotary_key() -> None:
    """DeepSeek-V2's paper: 512 + 64 numbers per token and layer."""
    latent = {"kv_rank": 512, "query_rank": 1536, "rope_dim": 64, "nope_dim": 128, "value_dim": 128}
    shape = Shape(depth=60, width=5120, heads=128, head_dim=192, latent=latent)  # type: ignore[arg-type]
    assert inference_memory(shape).cache_bytes_per_token == 2 * 60 * 576


def test_a_window_bounds_the_cache_of_its_layers() -> None:
    shape = Shape(depth=4, width=64, heads=4, context=100, window=16, sliding_layers=(0, 2))
    per_position = 2 * 2 * 64
    assert inference_memory(shape).cache == per_position * (2 * 100 + 2 * 16)
    assert inference_memory(shape, sequence=8).cache == per_position * 4 * 8
    assert "min(T, window)" in inference_memory(shape).formula["cache"]


@pytest.mark.parametrize(("precision", "size"), [("fp32", 4), ("bf16", 2), ("fp8", 1), ("int4", 0.5)])
def test_weights_shrink_with_the_precision(precision: str, size: float) -> None:
    shape = Shape(depth=2, width=64)
    assert inference_memory(shape, precision=precision).weights == round(size * shape.total_params)


def test_what_is_not_offered_is_refused_in_one_sentence() -> None:
    shape = Shape(depth=1, width=64)
    with pytest.raises(DeepwideError, match=r"no training precision 'fp23': did you mean 'fp32'\?$"):
        training_memory(shape, precision="fp23")
    with pytest.raises(DeepwideError, match=r"no inference precision 'int5': did you mean 'int"):
        inference_memory(shape, precision="int5")
    with pytest.raises(DeepwideError, match=r"no inference precision 'int5': did you mean 'int"):
        inference_memory(shape, cache_precision="int5")
    for call in (training_memory, inference_memory):
        with pytest.raises(DeepwideError, match="batch must be at least 1, not '0'"):
            call(shape, batch=0)
        with pytest.raises(DeepwideError, match="sequence must be at least 1, not '-4'"):
            call(shape, sequence=-4)
