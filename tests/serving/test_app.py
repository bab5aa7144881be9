"""The application as a whole: its OpenAPI, whatever is thrown at it, and its laws."""

import importlib
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from benchmarks.web.settings import FITTED
from hypothesis import HealthCheck, given, settings
from starlette.testclient import TestClient

from deepwide.serving import make_app

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: pip install schemathesis")
NotSet = type(importlib.import_module("schemathesis.core").NOT_SET)
EXAMPLES = 6  # per operation


def test_nothing_that_the_schema_allows_breaks_the_server(app: Any, client: TestClient) -> None:
    """Its own pytest plugin does not know pytest 9, so the operations are walked here."""
    loaded = schemathesis.openapi.from_dict(client.get("/openapi.json").json())
    # Streams do not end, and a measurement is a process: both have tests of their own.
    chosen = loaded.exclude(path_regex="events$").exclude(path="/api/measurements", method=["POST"])
    asked: dict[str, set[int]] = {}
    for operation in (each.ok() for each in chosen.get_all_operations()):

        @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
        @given(case=operation.as_strategy())
        def attempt(case: Any) -> None:
            response = ask(client, case)
            asked.setdefault(f"{case.method} {case.path}", set()).add(response.status_code)
            assert response.status_code < 500, (case.method, case.path, case.query, case.body, response.text)
            if response.status_code >= 400:
                assert response.json()["error"]

        attempt()
    assert len(asked) == len([1 for _ in chosen.get_all_operations()]) > 15
    assert 200 in set().union(*asked.values())
    assert app is not None


def ask(client: TestClient, case: Any) -> Any:
    """A generated case as a request."""
    path = case.path.format(
        **{name: quote(str(value), safe="") for name, value in (case.path_parameters or {}).items()}
    )
    json = {} if isinstance(case.body, NotSet) else {"json": case.body}
    query = {name: value for name, value in (case.query or {}).items() if value is not None}
    return client.request(case.method, path, params=query, **json)


def test_the_schema_has_the_library_s_own_models(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    models = document["components"]["schemas"]
    assert {
        "Plan",
        "Audit",
        "Count",
        "Bounds",
        "BoundsCurves",
        "Certificate",
        "SweepState",
        "StudyResult",
    } <= models.keys()
    assert "block_params" in models["CellState"]["properties"]
    for path, verbs in document["paths"].items():
        assert verbs.keys() <= {"get", "post", "delete"}, path


def test_the_only_verbs_that_change_anything_are_a_measurement_s_and_an_upload_s(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert {(path, verb) for path, verbs in paths.items() for verb in verbs if verb != "get"} == {
        ("/api/audit", "post"),
        ("/api/measurements", "post"),
        ("/api/measurements/{key}", "delete"),
    }


def test_laws_that_are_given_are_offered(home: Path) -> None:
    law = FITTED["own ridge"]
    with TestClient(make_app(home, laws=[law]), base_url="http://localhost") as client:
        assert client.get("/api/plan", params={"budget": "1M", "law": law.name}).json()["law"] == law.name
        assert law.name in client.get("/").text


def test_there_is_no_page_that_loads_programs_from_elsewhere(client: TestClient) -> None:
    assert client.get("/docs").status_code == 404
    assert client.get("/redoc").status_code == 404
