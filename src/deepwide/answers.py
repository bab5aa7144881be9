"""What every answer is made of: an estimate with its interval, a note, a verdict. All frozen, all dump to JSON."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict

from deepwide.errors import DeepwideError

if TYPE_CHECKING:
    import pandas
    import polars

Z95 = 1.959964  # the normal quantile of a two-sided 95% interval


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95% interval, where there is one."""

    value: float
    low: float | None = None
    high: float | None = None

    def map(self, function: Callable[[float], float]) -> "Interval":
        """The interval of a rising function of the estimate."""
        low, high = (None if end is None else function(end) for end in (self.low, self.high))
        return Interval(function(self.value), low, high)


@dataclass(frozen=True)
class Note:
    """Something the reader should know: a code for programs, a sentence for people, the numbers in it.

    The text never names a command-line option: it is shown on a page and raised in a library as well.

    >>> str(Note.of("extrapolated", "the law was fitted below 2.8B", largest=2.8e9))
    'the law was fitted below 2.8B'
    """

    code: str
    text: str
    data: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, code: str, text: str, **data: Any) -> Self:
        """A note with its numbers by name."""
        return cls(code, text, data)

    def __str__(self) -> str:
        return self.text


class Answer(BaseModel):
    """The base of every answer: frozen, closed, and a table of plain rows on request."""

    # Built when first needed: a plan must answer at once.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    def rows(self) -> list[dict[str, Any]]:
        """The answer as a table of plain values, one dict per row; by default its scalar fields in one row."""
        plain = self.model_dump(mode="json")
        return [{name: value for name, value in plain.items() if not isinstance(value, dict | list)}]

    def to_polars(self) -> "polars.DataFrame":
        """`rows` as a Polars data frame."""
        return to_polars(self.rows())

    def to_pandas(self) -> "pandas.DataFrame":
        """`rows` as a pandas data frame."""
        return to_pandas(self.rows())


class Verdict(Answer):
    """How a claim was judged: by which rule, on what measurement, with which outcome.

    The rule names its outcomes: too deep / within / too shallow for an audit, seen / not seen / undecided for a fit,
    reproduced / not reproduced / not decidable at this scale for a study.
    """

    claim: str
    outcome: str
    rule: str
    measured: Interval | None = None
    notes: tuple[Note, ...] = ()


def to_polars(rows: list[dict[str, Any]]) -> "polars.DataFrame":
    """Rows as a Polars data frame."""
    try:
        import polars
    except ImportError:
        raise DeepwideError("A Polars table needs polars: pip install polars.") from None
    return polars.DataFrame(rows, infer_schema_length=None)


def to_pandas(rows: list[dict[str, Any]]) -> "pandas.DataFrame":
    """Rows as a pandas data frame."""
    try:
        import pandas
    except ImportError:
        raise DeepwideError("A pandas table needs pandas: pip install pandas.") from None
    return pandas.DataFrame(rows)
