"""The command: what it passes on and what it prints."""

import json
from typing import Any

import pytest

from cli.calling import call
from deepwide import serving
from deepwide.serving import Address

ADDRESS = Address(
    url="http://127.0.0.1:8383/", host="127.0.0.1", port=8383, folder="/runs", sweeps=2, studies=1, exposed=False
)


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What `serve` is called with; it says at once that it has started."""
    settings: dict[str, Any] = {}

    def serve(folder: Any, **others: Any) -> None:
        settings.update(others, folder=str(folder))
        others["started"](ADDRESS.model_copy(update={"exposed": others["expose"]}))

    monkeypatch.setattr(serving, "serve", serve, raising=False)
    return settings


def test_it_prints_the_address(given: dict[str, Any]) -> None:
    done = call("serve")
    assert done.returncode == 0
    assert "http://127.0.0.1:8383/" in done.stdout
    assert "2 sweeps and 1 study" in done.stdout
    assert (given["folder"], given["host"], given["port"], given["expose"]) == (".", "127.0.0.1", 8383, False)


def test_its_options_reach_the_server(given: dict[str, Any]) -> None:
    done = call("serve", "runs", "--port", "0", "--host", "0.0.0.0", "--expose", "--law", "law.json")
    assert (given["folder"], given["port"], given["host"], given["expose"]) == ("runs", 0, "0.0.0.0", True)
    assert [str(law) for law in given["laws"]] == ["law.json"]
    assert "no password" in done.stdout


@pytest.mark.usefixtures("given")
def test_json_is_one_document() -> None:
    assert json.loads(call("serve", "--json").stdout) == ADDRESS.model_dump()


def test_a_refusal_names_the_option() -> None:
    done = call("serve", "--host", "0.0.0.0")
    assert done.returncode == 2
    assert done.stderr.endswith("Add --expose.\n")
