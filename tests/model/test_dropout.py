"""Dropout drops the share it is asked for, where it says, the same for the same seed, step and row; else nothing."""

from itertools import count
from typing import Any

import pytest
import torch

from deepwide.model import Architecture, Transformer
from deepwide.model.dropout import Dropout
from model.builders import SMALL

SHARE = 0.25


def begun(step: str = "1/0", *, seed: int = 0, first: int = 0, rows: int = 3) -> Dropout:
    dropout = Dropout()
    dropout.begin(SHARE, seed, step, first=first, rows=rows)
    return dropout


def test_a_share_is_zero_and_the_mean_stays() -> None:
    x = torch.ones(3, 200, 100)
    dropped = begun()(x)
    assert dropped.unique().tolist() == [0.0, pytest.approx(1 / (1 - SHARE))]
    assert float((dropped == 0).float().mean()) == pytest.approx(SHARE, abs=0.01)  # 6 standard errors
    assert float(dropped.mean()) == pytest.approx(1, abs=0.012)


def test_it_depends_on_seed_and_step_and_row_alone() -> None:
    x = torch.ones(3, 8, 16)
    once = begun()(x)
    assert torch.equal(begun()(x), once)
    assert not torch.equal(begun("2/0")(x), once)
    assert not torch.equal(begun(seed=1)(x), once)
    assert torch.equal(torch.cat([begun(first=row)(x[:1]) for row in range(3)]), once)
    assert torch.equal(begun(first=1)(x[1:]), once[1:])


def test_it_does_not_touch_the_global_generator() -> None:
    state = torch.get_rng_state()
    begun()(torch.ones(3, 4, 4))
    assert torch.equal(torch.get_rng_state(), state)


def test_nothing_is_dropped_before_it_began_and_in_evaluation() -> None:
    x = torch.ones(3, 8, 16)
    assert Dropout()(x) is x
    assert begun().eval()(x) is x


@pytest.mark.parametrize("kind", ["decoder", "encoder-decoder"])
@pytest.mark.parametrize("place", ["pre", "post", "peri"])
def test_it_acts_on_what_stacks_read_and_on_what_sublayers_add(kind: str, place: str) -> None:
    """Against the same network in evaluation whose named activations are multiplied by masks drawn here."""
    more: dict[str, Any] = {"encoder_depth": 2} if kind == "encoder-decoder" else {}
    design = Architecture.of("levine", **SMALL, kind=kind, norm_place=place, positions="none", **more)
    model = Transformer(design)
    tokens = torch.arange(24).reshape(3, 8) % 11
    inputs = {"source_BS": tokens.flip(1)} if more else {}
    drawn = begun()
    numbers = count()

    def dropped(x: torch.Tensor) -> torch.Tensor:
        next(numbers)
        return drawn(x)

    added = "normed_output" if place == "peri" else "output"
    edits = {f"*{name}.{added}": dropped for name in ("attention", "cross", "feed_forward")}
    edits |= {"embedding": dropped, "encoder.embedding": dropped}
    expected, _ = model.eval().run_with_cache(tokens, [], edits=edits if more else _without_encoder(edits), **inputs)
    model.train().dropout.begin(SHARE, 0, "1/0", first=0, rows=3)
    assert torch.allclose(model(tokens, **inputs), expected, atol=1e-6)
    assert next(numbers) == (1 + 2 * 2) + (1 + 2 * 3 if more else 0), "embedding, then two or three sublayers a block"


def _without_encoder(edits: dict[str, Any]) -> dict[str, Any]:
    return {name: edit for name, edit in edits.items() if "encoder" not in name and "cross" not in name}


def test_a_network_has_no_more_parameters_and_no_more_to_save() -> None:
    model = Transformer(Architecture.of("levine", **SMALL))
    before = list(model.state_dict())
    model.dropout.begin(SHARE, 0, "1/0", first=0, rows=3)
    assert list(model.state_dict()) == before
    assert not [name for name in before if "dropout" in name]
