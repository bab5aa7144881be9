"""The folder and the application, built once: nothing that is asked of them changes them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra 'serve' is not installed")

from starlette.testclient import TestClient

from deepwide.serving import make_app
from serving.folders import write_folder


@pytest.fixture(scope="package")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="package")
def app(home: Path) -> Any:
    return make_app(home, pause_seconds=0.05)


@pytest.fixture(scope="package")
def client(app: Any) -> Iterator[TestClient]:
    with TestClient(app, base_url="http://127.0.0.1:8383") as opened:
        yield opened


@pytest.fixture(scope="package")
def keys(client: TestClient) -> dict[str, str]:
    """The ids of sweeps and studies by their folders."""
    index = client.get("/api/index").json()
    return {each["folder"]: each["id"] for each in (*index["sweeps"], *index["studies"])}
