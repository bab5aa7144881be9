"""What to train on, and how text becomes tokens. No torch here."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from deepwide.settings import Part

BYTES_VOCAB = 256
LEAST_BPE = 257  # every byte, and the end of a document


class DataConfig(Part):
    """A source (see sources.py), a tokeniser and a share of documents kept for validation."""

    source: Annotated[str, Field(min_length=1, max_length=4096)] = "python"
    column: Annotated[str, Field(min_length=1, max_length=200)] = "text"  # of a .jsonl or .parquet file
    tokeniser: Literal["bytes", "bpe"] = "bytes"
    vocab: Annotated[int, Field(ge=2, le=1_000_000)] | None = None  # for bpe
    validation: Annotated[float, Field(gt=0, lt=1)] = 0.05

    @model_validator(mode="after")
    def _vocab_fits(self) -> Self:
        if self.tokeniser == "bytes" and self.vocab not in (None, BYTES_VOCAB):
            raise ValueError(f"bytes have a vocabulary of {BYTES_VOCAB}, not {self.vocab}: leave it out or choose bpe")
        if self.tokeniser == "bpe" and self.vocab is not None and self.vocab < LEAST_BPE:
            raise ValueError(f"byte-pair encoding needs a vocabulary of at least {LEAST_BPE}, not {self.vocab}")
        return self

    @property
    def vocab_size(self) -> int:
        """How many different tokens there are."""
        return BYTES_VOCAB if self.tokeniser == "bytes" else self.vocab or 4096

    def resolved(self) -> Self:
        """With the vocabulary filled in."""
        return self.model_copy(update={"vocab": self.vocab_size})
