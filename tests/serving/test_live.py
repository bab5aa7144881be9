"""Sweeps and studies over HTTP: states, curves, figures, reports; and paths that lead nowhere."""

import base64
import json
import re
import shutil
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from deepwide.report import make_report, to_html
from deepwide.serving import make_app
from deepwide.serving.live import FitAnswer, Live
from deepwide.serving.pages import REPORT
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


def test_a_study_s_page_is_its_report_with_the_way_to_the_other_pages(
    client: TestClient, keys: dict[str, str], home: Path
) -> None:
    key = keys["studies/stair-cpu"]
    page = client.get(f"/studies/{key}")
    assert page.status_code == 200
    assert "aria-current=page>Studies" in page.text
    body = page.text.partition("<header>")[2]
    assert body == client.get(f"/api/studies/{key}/report").text.partition("<header>")[2]
    assert body == to_html(make_report(home / "studies" / "stair-cpu")).partition("<header>")[2]
    assert page.headers["content-security-policy"] == REPORT
    assert EVIL not in page.text, "a picture is an image's address, in which nothing runs"
    assert client.get(f"/studies/{keys['studies/torn']}").status_code == 422
    unknown = client.get("/studies/<b>x")
    assert unknown.status_code == 404
    assert "There is no such study under the served folder." in unknown.text


def test_a_picture_that_is_a_link_is_not_in_a_study_s_page(tmp_path: Path, home: Path) -> None:
    study = tmp_path / "served" / "stair"
    shutil.copytree(home / "studies" / "stair-cpu", study)
    (tmp_path / "secret").write_text("<svg>secret</svg>")
    (study / "link.svg").symlink_to(tmp_path / "secret")
    client = TestClient(make_app(tmp_path / "served"), base_url="http://127.0.0.1")
    key = client.get("/api/index").json()["studies"][0]["id"]
    for path in (f"/studies/{key}", f"/api/studies/{key}/report"):
        pictures = re.findall(r'<img src="data:image/svg\+xml;base64,([^"]+)"', client.get(path).text)
        assert [b"secret" in base64.b64decode(each) for each in pictures] == [False], "evil.svg is a plain file"


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
