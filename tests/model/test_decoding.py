"""Reading tokens piece by piece gives the logits of one full pass over all of them."""

from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from deepwide import DeepwideError
from deepwide.model import Architecture, Decoder, Transformer, generate
from model.builders import SMALL, designs, seeded, shaken

TOKENS_BT = torch.randint(11, (3, 8), generator=seeded(1))


@settings(max_examples=80, deadline=None)
@given(designs(), st.data())
def test_pieces_of_any_length_give_the_logits_of_the_whole(design: Architecture, data: st.DataObject) -> None:
    s = design.shape
    assume(s.kind == "decoder" and s.head == "tokens")
    model = shaken(design, 3)
    tokens_BT = torch.randint(s.vocab, (2, s.context), generator=seeded(4))
    whole_BTV, decoder, pieces = model(tokens_BT), Decoder(model, batch=2), []
    while decoder.length < s.context:
        count = data.draw(st.integers(1, s.context - decoder.length))
        pieces.append(decoder.read(tokens_BT[:, decoder.length : decoder.length + count], every=True))
    assert torch.allclose(torch.cat(pieces, dim=1), whole_BTV, atol=1e-9, rtol=1e-7, equal_nan=True)


@pytest.mark.parametrize("positions", ["learned", "rotary", "alibi", "none"])
@pytest.mark.parametrize("norm_place", ["pre", "post", "peri", "pre_scaled"])
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_a_prompt_and_single_tokens_give_the_logits_of_the_whole(
    positions: str, norm_place: str, kv_heads: int
) -> None:
    changes: dict[str, Any] = {"positions": positions, "norm_place": norm_place}
    model = shaken(Architecture.of("llama", **SMALL, heads=4, kv_heads=kv_heads, **changes), 0)
    whole_BTV, decoder = model(TOKENS_BT), Decoder(model, batch=3)
    assert torch.allclose(decoder.read(TOKENS_BT[:, :5])[:, 0], whole_BTV[:, 4], atol=1e-10)
    for t in range(5, 8):
        assert torch.allclose(decoder.read(TOKENS_BT[:, t : t + 1])[:, 0], whole_BTV[:, t], atol=1e-10)


def test_generating_is_taking_the_likeliest_token_of_the_full_pass_again_and_again() -> None:
    model = shaken(Architecture.of("levine", **SMALL), 5)
    tokens_BT = TOKENS_BT[:, :3]
    for _ in range(5):
        tokens_BT = torch.cat([tokens_BT, model(tokens_BT)[:, -1:].argmax(-1)], dim=1)
    assert torch.equal(generate(model, TOKENS_BT[:, :3], 5), tokens_BT[:, 3:])


def test_a_decoder_goes_back_and_reads_something_else() -> None:
    model = shaken(Architecture.of("llama", **SMALL), 6)
    decoder = Decoder(model, batch=3)
    decoder.read(TOKENS_BT)
    decoder.rewind(2)
    other_BT = torch.cat([TOKENS_BT[:, :2], TOKENS_BT[:, 4:7]], dim=1)
    assert torch.allclose(decoder.read(other_BT[:, 2:])[:, 0], model(other_BT)[:, -1], atol=1e-10)
    with pytest.raises(DeepwideError, match="5 positions to go back in"):
        decoder.rewind(6)


def test_what_cannot_be_decoded_is_refused_in_a_sentence() -> None:
    with pytest.raises(DeepwideError, match="for decoders with a head for tokens"):
        Decoder(Transformer(Architecture.of("levine", **SMALL, kind="encoder")))
    hard: dict[str, Any] = {"heads": 1, "attention": "hard", "looks": ("leftmost none",)}
    with pytest.raises(DeepwideError, match="hard attention"):
        Decoder(Transformer(Architecture.of("levine", **SMALL, **hard)))
    model = Transformer(Architecture.of("levine", **SMALL))
    with pytest.raises(DeepwideError, match="room must be from 1 to the context of 8"):
        Decoder(model, room=9)
    decoder = Decoder(model, batch=3, room=7)
    with pytest.raises(DeepwideError, match="8 tokens are more than the 7 positions"):
        decoder.read(TOKENS_BT)
