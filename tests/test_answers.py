"""What answers are made of: frozen, closed, plain in JSON, tables on request."""

import json

import pytest
from pydantic import ValidationError

from deepwide.answers import Answer, Interval, Note, Verdict, to_polars

VERDICT = Verdict(
    claim="depth 96 suits GPT-3",
    outcome="too deep",
    rule="the whole interval is above 1",
    measured=Interval(1.19, 1.1, 1.3),
    notes=(Note.of("extrapolated", "fitted below 2.8B", largest=2.8e9),),
)


def test_a_verdict_survives_json() -> None:
    assert Verdict.model_validate_json(VERDICT.model_dump_json()) == VERDICT
    assert json.loads(VERDICT.model_dump_json())["notes"][0] == {
        "code": "extrapolated", "text": "fitted below 2.8B", "data": {"largest": 2.8e9},
    }  # fmt: skip


def test_an_answer_cannot_be_changed_or_given_what_it_does_not_know() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        VERDICT.outcome = "within"  # type: ignore[misc]
    with pytest.raises(ValidationError, match="other"):
        Verdict(claim="c", outcome="o", rule="r", other=1)  # type: ignore[call-arg]


def test_an_answer_gives_its_rows_as_a_table() -> None:
    class Pair(Answer):
        depths: tuple[int, ...]

        def rows(self) -> list[dict[str, object]]:
            return [{"depth": depth} for depth in self.depths]

    assert Pair(depths=(2, 4)).to_polars()["depth"].to_list() == [2, 4]
    assert Pair(depths=(2, 4)).to_pandas()["depth"].tolist() == [2, 4]
    assert VERDICT.rows() == [
        {"claim": "depth 96 suits GPT-3", "outcome": "too deep", "rule": "the whole interval is above 1"}
    ]
    assert to_polars([]).is_empty()
