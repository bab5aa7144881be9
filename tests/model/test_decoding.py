"""Reading tokens piece by piece gives the logits of one full pass over all of them."""

from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from deepwide import DeepwideError
from deepwide.model import Architecture, Decoder, Transformer, beam_search, generate
from deepwide.model.decoding import penalty
from model.builders import SMALL, designs, inputs_for, seeded, shaken

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


@settings(max_examples=60, deadline=None)
@given(designs(), st.data(), st.booleans())
def test_a_decoder_with_a_source_gives_the_logits_of_the_whole(
    design: Architecture, data: st.DataObject, padded: bool
) -> None:
    s = design.shape
    assume(s.kind == "encoder-decoder")
    model = shaken(design, 3)
    tokens_BT = torch.randint(s.vocab, (2, s.context), generator=seeded(4))
    source = {name: value for name, value in inputs_for(design, 5, padded=padded).items() if "source" in name}
    whole_BTV, decoder, pieces = model(tokens_BT, **source), Decoder(model, batch=2, **source), []
    while decoder.length < s.context:
        count = data.draw(st.integers(1, s.context - decoder.length))
        pieces.append(decoder.read(tokens_BT[:, decoder.length : decoder.length + count], every=True))
    assert torch.allclose(torch.cat(pieces, dim=1), whole_BTV, atol=1e-9, rtol=1e-7, equal_nan=True)


def translator(seed: int = 0, **changes: Any) -> Transformer:
    shape: dict[str, Any] = {"depth": 2, "encoder_depth": 1, "width": 16, "vocab": 5, "context": 4}
    model = shaken(Architecture.of("levine", kind="encoder-decoder", **shape | changes), seed)
    with torch.no_grad():
        model.embedding.weight *= 3  # probabilities that differ
    return model


SOURCES_BS = torch.tensor([[1, 2, 3, 0], [4, 0, 0, 0], [2, 2, 0, 0]])
REAL_BS = torch.tensor([[True] * 4, [True, True, False, False], [True, True, True, False]])


def all_answers(model: Transformer, source: int, longest: int, alpha: float) -> dict[tuple[int, ...], float]:
    """The score of every answer there is, each by a full pass: those that end, and those of the greatest length."""
    V, scores = model.design.shape.vocab, {}
    for length in range(longest + 1):
        for words in product(range(1, V), repeat=length):
            ended = (*words, 0) if length < longest else words
            begun = torch.tensor([[0, *ended[:-1]]])
            rows = {"source_BS": SOURCES_BS[[source]], "source_padding_BS": REAL_BS[[source]]}
            logs_TV = model(begun, **rows)[0].log_softmax(-1).detach()
            total = float(logs_TV[range(len(ended)), list(ended)].sum())
            scores[words] = total / penalty(len(ended), alpha)
    return scores


@pytest.mark.parametrize("alpha", [0.0, 0.7, 2.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_beam_that_holds_everything_finds_the_best_of_all_answers(seed: int, alpha: float) -> None:
    model, longest = translator(seed), 4
    found = beam_search(model, SOURCES_BS, REAL_BS, beam=5**4, alpha=alpha)
    for source, hypothesis in enumerate(found):
        scores = all_answers(model, source, longest, alpha)
        assert len(scores) == 1 + 4 + 4**2 + 4**3 + 4**4
        assert hypothesis.tokens == max(scores, key=scores.__getitem__)
        assert hypothesis.score == pytest.approx(max(scores.values()), abs=1e-9)


@pytest.mark.parametrize("beam", [1, 2, 3, 5])
def test_a_narrow_beam_is_what_a_plain_loop_over_full_passes_keeps(beam: int) -> None:
    """The same search, a source at a time, without cache, early end or batch."""
    model, alpha, longest = translator(4, context=7, vocab=6), 0.6, 7
    for source, hypothesis in enumerate(beam_search(model, SOURCES_BS, REAL_BS, beam=beam, alpha=alpha)):
        kept: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
        ended: list[tuple[float, tuple[int, ...]]] = []
        for length in range(1, longest + 1):
            grown = []
            for total, words in kept:
                rows = {"source_BS": SOURCES_BS[[source]], "source_padding_BS": REAL_BS[[source]]}
                logs_V = model(torch.tensor([[0, *words]]), **rows)[0, -1].log_softmax(-1).detach()
                grown += [(total + float(log), (*words, token)) for token, log in enumerate(logs_V)]
            best = sorted(grown, reverse=True)[:beam]
            stop = [(total / penalty(length, alpha), words) for total, words in best if words[-1] == 0]
            ended += [(score, words[:-1]) for score, words in stop]
            kept = [(total, words) for total, words in best if words[-1] != 0]
            if length == longest:
                ended += [(total / penalty(length, alpha), words) for total, words in kept]
        score, words = max(ended)
        assert hypothesis.tokens == words
        assert hypothesis.score == pytest.approx(score, abs=1e-9)


def test_a_beam_of_one_is_greedy_and_answers_do_not_depend_on_the_batch() -> None:
    model = translator(7, context=6)
    together = beam_search(model, SOURCES_BS, REAL_BS, beam=1)
    for source, hypothesis in enumerate(together):
        rows = {"source_BS": SOURCES_BS[[source]], "source_padding_BS": REAL_BS[[source]]}
        words = [0]
        while len(words) <= 6:
            words.append(int(model(torch.tensor([words]), **rows)[0, -1].argmax()))
            if words[-1] == 0:
                break
        assert hypothesis.tokens == tuple(word for word in words[1:] if word)
        (alone,) = beam_search(model, SOURCES_BS[[source]], REAL_BS[[source]], beam=1)
        assert alone.tokens == hypothesis.tokens


def test_a_search_that_makes_no_sense_costs_a_sentence() -> None:
    model = translator()
    with pytest.raises(DeepwideError, match="beam must be at least 1, not '0'"):
        beam_search(model, SOURCES_BS, beam=0)
    with pytest.raises(DeepwideError, match="alpha, the weight of length, must be from 0 to 10"):
        beam_search(model, SOURCES_BS, alpha=-1)
    with pytest.raises(DeepwideError, match="a source is for encoder-decoders, which need one"):
        Decoder(model)


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
