"""Sweeps and studies over HTTP: states, curves, figures, reports; and paths that lead nowhere."""

import json
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from deepwide.serving import live as module
from deepwide.serving.live import FitAnswer, Live
from deepwide.studies import estimated_seconds, read_result, studies
from deepwide.sweeping import RunsReader, SweepState
from serving.folders import EVIL


def test_a_sweep_is_a_sweep_state(client: TestClient, keys: dict[str, str], home: Path) -> None:
    state = SweepState.model_validate(client.get(f"/api/sweeps/{keys['runs/small']}").json(), strict=False)
    assert state.runs == "runs/small"
    expected = RunsReader(home / "runs" / "small").state()
    assert {cell.id: cell for cell in state.cells} == {cell.id: cell for cell in expected.cells}
    assert state.counts == expected.counts == {"waiting": 2, "running": 1, "unreadable": 1, "done": 32}
    assert client.get(f"/api/sweeps/{keys['runs/toys']}").json()["counts"] == {"waiting": 8}


def test_curves_are_those_of_the_runs(client: TestClient, keys: dict[str, str], home: Path) -> None:
    run = sorted(path.parent.name for path in (home / "runs" / "few").glob("*/result.json"))[0]
    (curve,) = client.get(f"/api/sweeps/{keys['runs/few']}/curves", params={"run": run}).json()
    records = (home / "runs" / "few" / run / "metrics.jsonl").read_text().splitlines()
    assert curve["points"] == [[json.loads(line)["step"], json.loads(line)["loss"]] for line in records]


def test_a_long_curve_is_thinned_and_keeps_its_end() -> None:
    points = [(step, 1.0) for step in range(10_001)]
    thinned = module._thinned(points)
    assert len(thinned) <= module.MOST_POINTS
    assert (thinned[0], thinned[-1]) == (points[0], points[-1])


@pytest.mark.parametrize("run", ["..", "../few", "/etc", "0" * 16, "%2e%2e%2f"])
def test_a_run_that_the_sweep_has_not_is_no_path(client: TestClient, keys: dict[str, str], run: str) -> None:
    assert client.get(f"/api/sweeps/{keys['runs/small']}/curves", params={"run": run}).status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "/api/sweeps/..", "/api/sweeps/%2e%2e%2f%2e%2e%2fetc", "/api/sweeps/runs%2Fsmall", "/api/sweeps/x/events",
        "/api/sweeps/x/fit", "/api/sweeps/x/report", "/api/studies/..%2f..", "/api/studies/x/report",
        "/static/../app.py",
        "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd", "/api/studies/x/figures/a.svg",
        "/..%2f..%2fetc%2fpasswd",
    ],
)  # fmt: skip
def test_a_path_is_no_id(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.json()["error"]


def test_a_study_and_its_report(client: TestClient, keys: dict[str, str], home: Path) -> None:
    key = keys["studies/stair-cpu"]
    result = read_result(home / "studies" / "stair-cpu")
    assert client.get(f"/api/studies/{key}").json() == json.loads(result.model_dump_json())
    report = client.get(f"/api/studies/{key}/report")
    assert "sandbox" in report.headers["content-security-policy"]
    assert result.question in report.text
    assert client.get(f"/api/studies/{keys['studies/torn']}").status_code == 422
    known = {each["name"]: each["expected_seconds"] for each in client.get("/api/studies/known").json()}
    assert known == {name: estimated_seconds(study) for name, study in studies().items()}


def test_a_hostile_picture_can_run_nothing(client: TestClient, keys: dict[str, str]) -> None:
    answer = client.get(f"/api/studies/{keys['studies/stair-cpu']}/figures/evil.svg")
    assert EVIL in answer.text
    assert answer.headers["content-type"] == "image/svg+xml"
    assert answer.headers["content-security-policy"] == "default-src 'none'; style-src 'unsafe-inline'; sandbox"


@pytest.mark.parametrize("name", ["study.json", "..%2fstair-cpu%2fevil.svg", "%2e%2e", "page.md", "evil"])
def test_only_a_study_s_pictures_are_figures(client: TestClient, keys: dict[str, str], name: str) -> None:
    assert client.get(f"/api/studies/{keys['studies/stair-cpu']}/figures/{name}").status_code == 404


def test_a_fit_is_made_once_for_the_same_runs(
    client: TestClient, keys: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def work(self: Live, runs: Path, kind: str, what: str) -> dict[str, object]:  # noqa: ARG001
        asked.append(f"{what} {kind} {runs.name}")
        return {"kind": "fit", "fit": {"kind": kind}, "figures": {"law": f"<svg>{EVIL}</svg>"}, "html": "<p>"}

    monkeypatch.setattr(Live, "_work", work)
    path = f"/api/sweeps/{keys['runs/small']}/fit"
    for _ in range(2):
        answer = FitAnswer.model_validate(client.get(f"{path}?kind=ridge").json(), strict=False)
    assert (answer.runs, answer.figures, asked) == (32, ("law",), ["fit ridge small"])
    assert "sandbox" in client.get(f"{path}/law.svg?kind=ridge").headers["content-security-policy"]
    assert client.get(f"{path}/law.svg?kind=surface").status_code == 404
    assert client.get(f"/api/sweeps/{keys['runs/small']}/report").text == "<p>"
    assert client.get(f"{path}?kind=magic").status_code == 422
    assert client.get(f"/api/sweeps/{keys['runs/toys']}/fit").json()["error"] == "no run has finished."


def test_a_real_fit_refuses_in_a_sentence(client: TestClient, keys: dict[str, str]) -> None:
    answer = client.get(f"/api/sweeps/{keys['runs/few']}/fit").json()
    assert answer["fit"] is None
    assert answer["error"]


def test_nothing_is_written(client: TestClient, keys: dict[str, str], home: Path) -> None:
    def stamps() -> dict[str, tuple[int, int]]:
        return {str(p): (p.lstat().st_mtime_ns, p.lstat().st_size) for p in sorted(home.rglob("*"))}

    before = stamps()
    for path in ("/", "/sweeps", "/studies", "/api/index", f"/api/sweeps/{keys['runs/small']}", "/api/certificates"):
        assert client.get(path).status_code == 200
    client.get(f"/api/sweeps/{keys['runs/small']}/curves", params={"run": "x"})
    assert stamps() == before
