"""What the measuring process tells."""

from types import SimpleNamespace
from typing import Any

import pytest

from deepwide.answers import Note
from deepwide.separation import rank
from deepwide.serving import measurement
from deepwide.serving.measurement import Teller, run

MEMORY = 1 << 30


def told_by(request: dict[str, Any]) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    run(request, lambda kind, **data: lines.append({"kind": kind, **data}))
    return lines


def test_it_tells_its_stages_and_the_certificate() -> None:
    lines = told_by({"depth": 2, "width": 2, "memory": MEMORY})
    assert [line["kind"] for line in lines if line["kind"] != "progress"] == ["stage", "stage", "done"]
    assert lines[-1]["certificate"]["rank"] == rank(depth=2, width=2).rank


def test_progress_is_told_but_not_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[tuple[str, float]] = []
    clock = iter([0.0, 0.05, 0.2, 0.2, 0.25])
    monkeypatch.setattr(measurement, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with Teller(lambda kind, **data: lines.append((kind, data.get("share", 0.0)))).stage("a", 1.0) as progress:
        for share in (0.1, 0.2, 0.3):
            progress(share)
    assert lines == [("stage", 0.0), ("progress", 0.2)]


def test_a_note_is_told() -> None:
    lines: list[str] = []
    Teller(lambda kind, **data: lines.append(f"{kind}: {data['text']}")).note(Note.of("x", "beware"))
    assert lines == ["note: beware"]


def test_what_cannot_be_measured_is_a_sentence() -> None:
    lines = told_by({"depth": 4, "width": 64, "memory": MEMORY})
    assert [line["kind"] for line in lines] == ["failed"]
    assert "what would fit" in lines[0]["text"]
