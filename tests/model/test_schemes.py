"""Schemes: each is one model of its own, which can be built and recognised."""

import pytest

from deepwide.errors import DeepwideError
from deepwide.model import SCHEMES, Architecture, Scheme, Transformer, scheme_of


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_scheme_is_built_and_recognised(scheme: Scheme) -> None:
    choices = {**SCHEMES[scheme], "base_width": 8, "base_depth": 1}
    design = Architecture.of(depth=2, width=8, heads=1, vocab=5, context=4, kind="encoder", **choices)
    assert len(Transformer(design, 0).blocks) == 2
    assert scheme_of(choices) == scheme


def test_schemes_differ_from_each_other() -> None:
    assert len({str(sorted(model.items())) for model in SCHEMES.values()}) == len(SCHEMES)


def test_what_is_no_scheme_costs_a_sentence() -> None:
    with pytest.raises(DeepwideError, match="no scheme"):
        scheme_of({"norm_place": "post", "initialisation": "gpt2"})
