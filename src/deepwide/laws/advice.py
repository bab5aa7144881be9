"""Published advice about depth that predicts none: any depth, a ceiling, a cap on width."""

from typing import Literal

from pydantic import Field

from deepwide.laws.law import AdviceLaw


class IndifferentLaw(AdviceLaw):
    """Depth does not matter within a span of aspect ratios."""

    kind: Literal["indifferent"] = "indifferent"
    aspect_span: float = Field(gt=1)

    def advice(self, block_params: float, vocab: int) -> str:
        """Any depth."""
        del block_params, vocab
        return self.about


class CeilingLaw(AdviceLaw):
    """Depth pays up to a ceiling."""

    kind: Literal["ceiling"] = "ceiling"
    low: float = Field(gt=0)
    high: float = Field(gt=0)

    def advice(self, block_params: float, vocab: int) -> str:
        """At most so many layers."""
        del block_params, vocab
        return f"at most {self.low:g}–{self.high:g} layers"


class VocabularyLaw(AdviceLaw):
    """Width pays up to the vocabulary, so a size has a least depth."""

    kind: Literal["vocabulary"] = "vocabulary"

    def advice(self, block_params: float, vocab: int) -> str:
        """At least so many layers, given the vocabulary."""
        least = block_params / (12 * vocab**2)
        return self.about + (": no limit here" if least < 1 else f", so at least {least:.1f} layers")
