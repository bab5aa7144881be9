"""Shape: the depth, width and parts of one transformer. It knows itself and nothing about laws or training."""

from typing import Any, Self

from pydantic import ValidationError

from deepwide.errors import DeepwideError
from deepwide.settings import explain
from deepwide.shape.params import Params, count
from deepwide.shape.parts import Parts


class Shape(Parts):
    """One transformer: a decoder unless `kind` says otherwise.

    Only `depth` and `width` are required; the rest defaults to the network of Levine et al. and GPT-2:
    plain feed-forward of 4·width, learned positions, LayerNorm and biases, tied embeddings.

    >>> Shape(depth=12, width=768, heads=12, context=1024).total_params   # GPT-2
    124439808
    """

    @classmethod
    def of(cls, **fields: Any) -> Self:
        """`Shape(...)` whose complaint is one sentence, for input that a person or a file gave."""
        try:
            return cls(**fields)
        except ValidationError as error:
            raise DeepwideError(explain(error, cls, noun="field")) from None

    def but(self, **changes: Any) -> Self:
        """The same shape with some fields changed, validated again."""
        return self.of(**{name: getattr(self, name) for name in type(self).model_fields} | changes)

    @property
    def total_params(self) -> int:
        """Every trainable number, tied matrices once."""
        return self.params.total

    @property
    def block_params(self) -> int:
        """What the laws count: everything but embeddings and head."""
        return self.params.block

    @property
    def active_params(self) -> int:
        """What one token passes through: `total_params` less the experts it is not sent to."""
        return self.params.active

    @property
    def params(self) -> Params:
        """Parameters part by part."""
        return count(self)
