"""The network is what its Shape counts, what the papers define, and what `transformers` computes."""

import json
import math
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.model import PRESETS, Architecture, Transformer, from_hugging_face, load_folder
from deepwide.model import architecture as choices
from deepwide.model.attention import ATTENTION
from deepwide.model.feed_forward import ACTIVATIONS, FEED_FORWARD
from deepwide.model.initialisation import SPREADS
from deepwide.model.norm import NORMS
from deepwide.model.residual import RESIDUAL

SMALL: dict[str, Any] = {"depth": 2, "width": 16, "vocab": 11, "context": 8}


@st.composite
def designs(draw: st.DrawFn) -> Architecture:
    heads, kv_groups = draw(st.integers(1, 3)), draw(st.sampled_from([1, 2]))
    flag = st.booleans()
    bare = draw(st.booleans())
    attention = draw(st.sampled_from(sorted(ATTENTION)))
    positions = ["learned", "rotary", "none"] + (["alibi"] if attention == "softmax" else [])
    return Architecture.of(
        draw(st.sampled_from(sorted(PRESETS))),
        depth=draw(st.integers(1, 3)),
        width=draw(st.integers(1, 9)),
        heads=heads * kv_groups,
        kv_heads=heads,
        head_dim=2 * draw(st.integers(1, 3)),
        ff=draw(st.sampled_from(sorted(FEED_FORWARD))),
        ff_width=0 if bare else draw(st.integers(1, 12)),
        ff_bias=False if bare else draw(flag),
        vocab=draw(st.integers(1, 9)),
        context=draw(st.integers(1, 6)),
        tied=draw(flag),
        positions=draw(st.sampled_from(positions)),
        norm=draw(st.sampled_from(sorted(NORMS))),
        norm_place=draw(st.sampled_from(get_args(choices.NormPlace))),
        final_norm=draw(flag),
        embedding_norm=draw(flag),
        qk_norm=draw(st.sampled_from(["none", "head", "full"])),
        qkv_bias=draw(flag),
        out_bias=draw(flag),
        head_bias=draw(flag),
        extra_positions=draw(st.integers(0, 2)),
        attention=attention,
        activation=draw(st.sampled_from(sorted(ACTIVATIONS))),
        residual=draw(st.sampled_from(sorted(RESIDUAL))),
        initialisation=draw(st.sampled_from(sorted(SPREADS))),
        parametrisation=draw(st.sampled_from(get_args(choices.Parametrisation))),
        causal=draw(flag),
    )


@settings(max_examples=60, deadline=None)
@given(designs())
def test_a_network_has_as_many_parameters_as_its_shape_says_and_runs(design: Architecture) -> None:
    model = Transformer(design)
    assert sum(p.numel() for p in model.parameters()) == design.shape.total_params
    tokens_BT = torch.zeros(2, design.shape.context, dtype=torch.long)
    logits_BTV = model(tokens_BT)
    assert logits_BTV.shape == (2, design.shape.context, design.shape.vocab)
    loss = model(tokens_BT, tokens_BT)
    loss.backward()
    flat = torch.nn.functional.cross_entropy(logits_BTV.flatten(0, 1), tokens_BT.flatten())
    assert torch.allclose(loss, flat, atol=1e-5, rtol=1e-4, equal_nan=True)  # without norms, numbers may overflow


def test_every_named_choice_has_a_builder_and_every_builder_a_name() -> None:
    assert set(get_args(choices.AttentionKind)) == ATTENTION.keys()
    assert set(get_args(choices.Activation)) == ACTIVATIONS.keys()
    assert set(get_args(choices.Residual)) == RESIDUAL.keys()
    assert set(get_args(choices.Initialisation)) == SPREADS.keys()


@pytest.mark.parametrize("preset", ["levine", "llama", "linear"])
@pytest.mark.parametrize("changes", [{}, {"positions": "alibi"}, {"residual": "admin", "norm_place": "post"}])
def test_a_causal_network_does_not_see_the_future(preset: str, changes: dict[str, Any]) -> None:
    if preset == "linear" and changes:
        changes = {}
    model = Transformer(Architecture.of(preset, **SMALL, **changes)).double()
    tokens_BT = torch.randint(11, (1, 8), generator=torch.Generator().manual_seed(1))
    changed_BT = tokens_BT.clone()
    changed_BT[0, 5:] = (changed_BT[0, 5:] + 1) % 11
    before, after = model(tokens_BT), model(changed_BT)
    assert torch.allclose(before[:, :5], after[:, :5], atol=1e-12)
    assert not torch.allclose(before[:, 5:], after[:, 5:])


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("residual", ["none", "plain"])
@pytest.mark.parametrize("heads", [1, 2, 4])
def test_the_linear_preset_is_equation_3(causal: bool, residual: str, heads: int) -> None:
    """y^i = Σ_j Σ_h ⟨W^Q_h x^i, W^K_h x^j⟩ W^O_h W^V_h x^j, written with loops over plain numbers."""
    d, a = 4, 4 // heads
    size = {"depth": 2, "width": d, "heads": heads, "vocab": 7, "context": 5}
    model = Transformer(Architecture.of("linear", **size, causal=causal, residual=residual)).double()
    tokens = torch.tensor([[3, 1, 4, 1, 6]])
    x = [model.embedding.weight[t] + model.positions[i] for i, t in enumerate(tokens[0])]
    for block in model.blocks:
        q, k, v = block.attention.qkv.weight.split(d)
        o = block.attention.out.weight
        new = []
        for i in range(5):
            y = x[i].clone() if residual == "plain" else torch.zeros(d, dtype=torch.float64)
            for h in range(heads):
                rows = slice(h * a, (h + 1) * a)
                for j in range(i + 1 if causal else 5):
                    y = y + ((q[rows] @ x[i]) @ (k[rows] @ x[j])) * (o[:, rows] @ (v[rows] @ x[j]))
            new.append(y)
        x = new
    expected = torch.stack(x) @ model.head.weight.T
    assert torch.allclose(model(tokens)[0], expected, rtol=1e-10, atol=1e-12)


def _hugging_face(kind: str, **changes: Any) -> Any:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    if kind == "gpt2":
        config = transformers.GPT2Config(
            **{"vocab_size": 29, "n_positions": 12, "n_embd": 24, "n_layer": 3, "n_head": 4, **changes}
        )
        model = transformers.GPT2LMHeadModel(config)
    else:
        sizes = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 4}
        config = transformers.LlamaConfig(
            **{"vocab_size": 29, "max_position_embeddings": 12, "num_key_value_heads": 2, **sizes, **changes}
        )
        model = transformers.LlamaForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.3)  # biases and norms too, or an exchange of two would not be seen
    return model.eval()


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("gpt2", {}),
        ("gpt2", {"n_inner": 40, "activation_function": "relu", "layer_norm_epsilon": 1e-3}),
        ("gpt2", {"tie_word_embeddings": False}),
        ("llama", {}),
        ("llama", {"num_key_value_heads": 1, "rms_norm_eps": 1e-3, "tie_word_embeddings": True}),
        ("llama", {"attention_bias": True, "mlp_bias": True, "num_key_value_heads": 4}),
        ("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}),
    ],
)
def test_weights_in_hugging_face_layout_give_the_logits_of_transformers(
    kind: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    theirs = _hugging_face(kind, **changes)
    theirs.save_pretrained(tmp_path)
    ours = load_folder(tmp_path)
    assert ours.design.shape.total_params == theirs.num_parameters()
    tokens_BT = torch.randint(29, (2, 12), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        assert torch.allclose(ours(tokens_BT), theirs(tokens_BT).logits, rtol=1e-4, atol=2e-4)


def test_weights_that_do_not_fit_their_config_are_refused_with_a_sentence(tmp_path: Path) -> None:
    theirs = _hugging_face("gpt2")
    weights = dict(theirs.state_dict())
    config = theirs.config.to_dict()
    with pytest.raises(DeepwideError, match=r"the config says \(48, 24\)"):
        from_hugging_face(config | {"vocab_size": 48}, weights)
    del weights["transformer.h.1.mlp.c_fc.bias"]
    with pytest.raises(DeepwideError, match=r"lack what our 'blocks\.1\.feed_forward\.up\.bias' needs"):
        from_hugging_face(config, weights)
    with pytest.raises(DeepwideError, match="model_type 'bert' cannot be loaded"):
        from_hugging_face({"model_type": "bert"}, {})
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04evil")
    with pytest.raises(DeepwideError, match=r"pickled \.bin files are not read"):
        load_folder(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\x80\x04evil")
    with pytest.raises(DeepwideError, match="cannot be read"):
        load_folder(tmp_path)


def test_networks_of_other_depth_start_with_the_same_weights_where_they_can() -> None:
    fields = SMALL | {"residual": "none"}
    shallow, deep = (
        dict(Transformer(Architecture.of(**fields | {"depth": n}), seed=3).named_parameters()) for n in (2, 5)
    )
    assert all(torch.equal(shallow[name], deep[name]) for name in shallow)
    other = dict(Transformer(Architecture.of(**fields), seed=4).named_parameters())
    matrices = [name for name, p in other.items() if p.ndim == 2]
    assert not any(torch.equal(shallow[name], other[name]) for name in matrices)


def test_residual_schemes_start_as_their_papers_say() -> None:
    def first(residual: str, **changes: Any) -> Any:
        return Transformer(Architecture.of(**(SMALL | {"depth": 8, "residual": residual} | changes))).blocks[0]

    assert first("deepnorm").attention_join.alpha == 16**0.25
    assert first("rezero").attention_join.scale.tolist() == [0.0]
    assert first("layerscale").attention_join.scale[0].item() == pytest.approx(0.1)
    assert first("admin").feed_forward_join.scale[3].item() == pytest.approx(math.sqrt(17 / math.log(17) - 1))
    big = {"width": 256, "initialisation": "xavier", "norm_place": "post"}
    plain, deep = first("plain", **big).attention.qkv.weight, first("deepnorm", **big).attention.qkv.weight
    ratios = [(d.std() / p.std()).item() for p, d in zip(plain.split(256), deep.split(256), strict=True)]
    assert ratios == pytest.approx([1, 1, 64**-0.25])  # queries and keys keep their size, values shrink by β


def test_a_rezero_network_starts_as_the_identity() -> None:
    model = Transformer(Architecture.of(**SMALL, residual="rezero"))
    tokens_BT = torch.arange(8)[None]
    expected = model.final_norm(model.embedding(tokens_BT) + model.positions)
    assert torch.equal(model.hidden(tokens_BT), expected)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"preset": "lama"}, "did you mean 'llama'"),
        ({"resid": "plain"}, "did you mean 'residual'"),
        ({"residual": "magic"}, "residual: input should be 'plain'"),
        ({"heads": 3}, "not a multiple of heads"),
        ({"positions": "rotary", "heads": 16}, "even head_dim"),
        ({"attention": "linear", "positions": "alibi"}, "linear attention has none"),
        ({"block_norms": 3}, "has block_norms 2, the shape 3"),
        ({"experts": {"experts": 2, "active": 1, "width": 4}}, "counted but not trained yet"),
    ],
)
def test_choices_that_make_no_network_get_a_sentence(changes: dict[str, Any], sentence: str) -> None:
    preset = changes.pop("preset", "levine")
    with pytest.raises(DeepwideError, match=sentence):
        Architecture.of(preset, **(SMALL | changes))


@pytest.mark.parametrize("vocab", [7, 70000])
def test_the_fused_loss_has_the_gradients_of_cross_entropy(vocab: int) -> None:
    from deepwide.model.loss import cross_entropy

    generator = torch.Generator().manual_seed(0)
    h = torch.randn(37, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    w = torch.randn(vocab, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    b = torch.randn(vocab, generator=generator, dtype=torch.float64, requires_grad=True)
    target = torch.randint(vocab, (37,), generator=generator)
    (3 * cross_entropy(h, w, b, target)).backward()
    ours = [x.grad.clone() for x in (h, w, b) if x.grad is not None]
    for x in (h, w, b):
        x.grad = None
    (3 * torch.nn.functional.cross_entropy(h @ w.T + b, target)).backward()
    assert all(
        x.grad is not None and torch.allclose(o, x.grad, rtol=1e-5, atol=1e-9)
        for o, x in zip(ours, (h, w, b), strict=True)
    )


def test_the_fused_loss_is_exact_where_a_probability_underflows() -> None:
    from deepwide.model.loss import cross_entropy

    h, w = torch.tensor([[300.0], [1.0]]), torch.tensor([[1.0], [0.0]])
    loss = cross_entropy(h, w, None, torch.tensor([1, 0]))
    assert loss.item() == pytest.approx((300 + math.log(1 + math.exp(-1))) / 2)


@pytest.mark.parametrize("residual", ["plain", "deepnorm", "admin", "layerscale"])
def test_norms_stand_where_their_place_says(residual: str) -> None:
    """The three blocks written out: pre x + f(n(x)), post n(x + f(x)), peri x + n'(f(n(x)))."""
    x = torch.randn(2, 8, 16, generator=torch.Generator().manual_seed(0))
    for place in ("pre", "post", "peri"):
        block = Transformer(Architecture.of(**SMALL, residual=residual, norm_place=place)).blocks[0]
        a, f = (lambda y, b=block: b.attention(y, None, None)), block.feed_forward
        n1, n2, join1, join2 = (
            block.attention_norm,
            block.feed_forward_norm,
            block.attention_join,
            block.feed_forward_join,
        )
        if place == "pre":
            expected = join1(x, a(n1(x)))
            expected = join2(expected, f(n2(expected)))
        elif place == "post":
            expected = n1(join1(x, a(x)))
            expected = n2(join2(expected, f(expected)))
        else:
            expected = join1(x, block.attention_out_norm(a(n1(x))))
            expected = join2(expected, block.feed_forward_out_norm(f(n2(expected))))
        assert torch.equal(block(x, None, None), expected)
        y = torch.randn(2, 8, 16, generator=torch.Generator().manual_seed(1))
        scale = getattr(join1, "scale", 1.0)
        old, new = {"plain": (1, 1), "deepnorm": (4**0.25, 1), "admin": (scale, 1), "layerscale": (1, scale)}[residual]
        assert torch.allclose(join1(x, y), old * x + new * y)
