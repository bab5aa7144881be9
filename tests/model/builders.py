"""Random networks and inputs for them, for several tests."""

from typing import Any, get_args

import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor

from deepwide.model import PRESETS, Architecture, Transformer
from deepwide.model import architecture as choices

SMALL: dict[str, Any] = {"depth": 2, "width": 16, "vocab": 11, "context": 8}


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@st.composite
def designs(draw: st.DrawFn) -> Architecture:
    """Any network that can be built: every kind, head and named choice."""
    flag = st.booleans()
    kv_heads, groups = draw(st.integers(1, 3)), draw(st.sampled_from([1, 2]))
    bare = draw(flag)
    kind = draw(st.sampled_from(["decoder", "encoder", "encoder-decoder"]))
    head = "tokens" if kind == "encoder-decoder" else draw(st.sampled_from(["tokens", "class", "pair"]))
    attention = draw(st.sampled_from(["softmax", "linear"]))  # hard attention has no gradient: see test_attention.py
    positions = ["learned", "rotary", "none"] + (["alibi"] if attention == "softmax" else [])
    return Architecture.of(
        draw(st.sampled_from(sorted(PRESETS))),
        kind=kind,
        encoder_depth=draw(st.integers(1, 3)) if kind == "encoder-decoder" else 0,
        head=head,
        classes=0 if head == "tokens" else draw(st.integers(1, 5)),
        depth=draw(st.integers(1, 3)),
        width=draw(st.integers(1, 9)),
        heads=kv_heads * groups,
        kv_heads=kv_heads,
        head_dim=2 * draw(st.integers(1, 3)),
        ff=draw(st.sampled_from(["plain", "gated"])),
        ff_width=0 if bare else draw(st.integers(1, 12)),
        ff_bias=False if bare else draw(flag),
        vocab=draw(st.integers(1, 9)),
        context=draw(st.integers(1, 6)),
        tied=draw(flag),
        positions=draw(st.sampled_from(positions)),
        norm=draw(st.sampled_from(["layernorm", "rmsnorm", "none"])),
        norm_place=draw(st.sampled_from(get_args(choices.NormPlace))),
        final_norm=draw(flag),
        embedding_norm=draw(flag),
        qk_norm=draw(st.sampled_from(["none", "head", "full"])),
        qkv_bias=draw(flag),
        out_bias=draw(flag),
        head_bias=draw(flag),
        extra_positions=draw(st.integers(0, 2)),
        attention=attention,
        activation=draw(st.sampled_from(get_args(choices.Activation))),
        residual=draw(st.sampled_from(get_args(choices.Residual))),
        initialisation=draw(st.sampled_from(get_args(choices.Initialisation))),
        parametrisation=draw(st.sampled_from(get_args(choices.Parametrisation))),
        base_width=draw(st.integers(2, 9)),
        base_depth=draw(st.integers(1, 3)),
    )


def inputs_for(design: Architecture, seed: int, batch: int = 2, *, padded: bool = False) -> dict[str, Tensor]:
    """Tokens, the source where the network reads one, and padding at the end of random sequences."""
    generator, s = seeded(seed), design.shape

    def sequences() -> tuple[Tensor, Tensor]:
        length = int(torch.randint(1, s.context + 1, (), generator=generator))
        real_B = torch.randint(1, length + 1, (batch,), generator=generator)
        tokens = torch.randint(s.vocab, (batch, length), generator=generator)
        return tokens, torch.arange(length) < real_B[:, None]

    inputs = {}
    inputs["tokens_BT"], padding_BT = sequences()
    if padded:
        inputs["padding_BT"] = padding_BT
    if s.kind == "encoder-decoder" or s.head == "pair":
        inputs["source_BS"], source_padding_BS = sequences()
        if padded:
            inputs["source_padding_BS"] = source_padding_BS
    return inputs


def shaken(design: Architecture, seed: int = 0) -> Transformer:
    """A network in float64 with all parameters random and of one size.

    Biases, norms and scales too, or an exchange of two would not be seen; and no scores so large that rounding decides.
    """
    model, generator = Transformer(design, seed).double(), seeded(seed + 1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return model


def hugging_face(kind: str, **changes: Any) -> Any:
    """A small random GPT-2, Llama or BERT of `transformers`, which also gives its attention patterns."""
    transformers = pytest.importorskip("transformers", reason="needs the dev extra: pip install 'deepwide[dev]'")
    torch.manual_seed(0)
    if kind == "gpt2":
        config = transformers.GPT2Config(
            **{"vocab_size": 29, "n_positions": 12, "n_embd": 24, "n_layer": 3, "n_head": 4, **changes}
        )
        model = transformers.GPT2LMHeadModel._from_config(config, attn_implementation="eager")
    elif kind == "bert":
        sizes = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 4}
        config = transformers.BertConfig(**{"vocab_size": 29, "max_position_embeddings": 12, **sizes, **changes})
        model = transformers.BertModel._from_config(config, attn_implementation="eager")
    else:
        sizes = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 4}
        config = transformers.LlamaConfig(
            **{"vocab_size": 29, "max_position_embeddings": 12, "num_key_value_heads": 2, **sizes, **changes}
        )
        model = transformers.LlamaForCausalLM._from_config(config, attn_implementation="eager")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.3)  # biases and norms too, or an exchange of two would not be seen
    return model.eval()
