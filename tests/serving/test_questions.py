"""The JSON answers are the library's own, and no text of a client becomes a path."""

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import deepwide
from deepwide.planning import audit, count, plan
from deepwide.separation import bounds, bounds_curves, dimension_count
from deepwide.serving.questions import offered_laws


def plain(answer: Any) -> Any:
    return json.loads(answer.model_dump_json())


def test_a_plan_is_the_library_s(client: TestClient) -> None:
    assert client.get("/api/plan", params={"budget": "1.3B"}).json() == plain(plan("1.3B"))
    settings: dict[str, str | int | bool] = {
        "budget": "24GB",
        "kind": "memory",
        "kv_heads": 8,
        "vocab": "128k",
        "law": "nanochat",
        "at_most": True,
    }
    expected = plan("24GB", kind="memory", kv_heads=8, vocab="128k", law="nanochat", at_most=True)
    assert client.get("/api/plan", params=settings).json() == plain(expected)


def test_counts_of_a_plan_and_of_a_public_model_are_the_library_s(client: TestClient) -> None:
    answer = plan("7B")
    assert client.get("/api/plan/count?budget=7B").json() == plain(count(answer.shape, family=answer.family))
    assert client.get("/api/count?model=gpt2").json() == plain(count("gpt2"))


def test_audits_by_name_and_by_config_are_the_library_s(client: TestClient, tmp_path: Path) -> None:
    for name in ("gpt3-175b", "llama-3-8b"):
        assert client.get("/api/audit", params={"model": name}).json() == plain(audit(name))
    config = deepwide.write_config(deepwide.find_model("llama-3-8b").shape, "llama")
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    assert client.post("/api/audit", json=config).json() == plain(audit(path, name="config.json"))
    strange = config | {"model_type": "unheard-of"}
    path.write_text(json.dumps(strange))
    assert client.post("/api/audit", json=strange).json() == plain(audit(path, name="config.json"))


def test_bounds_curves_and_counts_are_the_library_s(client: TestClient) -> None:
    assert client.get("/api/bounds?depth=6&width=1000&heads=8").json() == plain(bounds(6, 1000, 8))
    curves = client.get("/api/bounds/curves?depth=2&width=2").json()
    assert [c["name"] for c in curves["by_depth"]["curves"]][-1] == "measured"  # the certificate under the folder
    assert len(curves["by_width"]["curves"]) == len(bounds_curves(2, 2).by_width.curves) + 1
    assert sum(client.get("/api/separation/count?depth=6&width=256").json()["blocks"]) == dimension_count(6, 256).total
    assert client.get("/api/certificates").json()[0]["rank"] == 18


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/api/plan?budget=much", "much"),
        ("/api/plan?buget=1B", "buget"),
        ("/api/plan?kind=money", "kind"),
        ("/api/audit?model=lama-3-8b", "did you mean"),
        ("/api/audit", "model"),
        ("/api/bounds?depth=0&width=1", "depth"),
        ("/api/bounds?depth=2&width=3&heads=9", "heads"),
        ("/api/plan?law=levin", "did you mean 'levine'"),
    ],
)
def test_a_bad_question_gets_one_sentence(client: TestClient, path: str, sentence: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 422
    assert answer.json().keys() == {"error"}
    assert sentence in answer.json()["error"]
    assert "\n" not in answer.json()["error"]


@pytest.mark.parametrize("text", ["/etc/passwd", "../secret.txt", "./config.json", "law.json", "~/law.json", "."])
def test_no_text_is_taken_for_a_path(
    client: TestClient, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(deepwide.write_config(deepwide.find_model("gpt2").shape, "gpt2")))
    (tmp_path / "law.json").write_text("{}")
    places = ("audit?model", "count?model", "plan?law", "plan?kind=flops&budget=1e21&compute", "plan/count?compute")
    for place in places:
        answer = client.get(f"/api/{place}={text}")
        assert answer.status_code == 422
        assert answer.json()["error"].startswith(("no model", "no law", "no compute law"))


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[1]", b"1.5", b"\xff\xfe", b"[" * 100_000, b'{"model_type": "mamba"}', b"{}"]
)
def test_a_malformed_upload_is_refused(client: TestClient, body: bytes) -> None:
    answer = client.post("/api/audit", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.json()["error"]


def test_laws_have_the_names_of_the_page() -> None:
    from benchmarks.web.settings import FITTED

    from deepwide.web import page_constants

    given = [*FITTED.values(), FITTED["own ridge"].model_copy(update={"name": "levine"})]
    keys = [row["key"] for row in page_constants(given)["laws"] if row["predicts"]]
    assert list(offered_laws(given)) == keys
