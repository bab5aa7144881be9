"""Public corpora are found on the machine first, fetched only when allowed, and checked."""

import hashlib
import http.server
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from deepwide.data import DataConfig
from deepwide.data import registry as registry_module
from deepwide.data.registry import REGISTRY, allow_network, network_allowed
from deepwide.data.sources import documents
from deepwide.errors import DeepwideError


def test_sets_on_this_machine_are_found_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "data" / "tinyshakespeare"
    home.mkdir(parents=True)
    (home / "input.txt").write_text("\n\n".join("To be or not to be. " * 50 for _ in range(30)))
    monkeypatch.setenv("DEEPWIDE_DATA", str(home.parent))
    assert len(list(documents(DataConfig(source="tinyshakespeare")))) > 5
    assert all(entry.files and entry.licence for entry in REGISTRY.values())


def test_pooch_fetches_and_checks_a_public_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "input.txt").write_bytes(b"not Shakespeare")
    handler = lambda *a: http.server.SimpleHTTPRequestHandler(*a, directory=str(tmp_path / "site"))  # noqa: E731
    monkeypatch.setattr(http.server.SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/input.txt"
        checksum = next(iter(REGISTRY["tinyshakespeare"].files.values()))
        monkeypatch.setenv("DEEPWIDE_NETWORK", "1")
        files = {address: checksum}
        entry = replace(REGISTRY["tinyshakespeare"], files=files)
        monkeypatch.setattr(registry_module, "REGISTRY", {**REGISTRY, "tinyshakespeare": entry})
        try:
            with pytest.raises(DeepwideError, match="could not be fetched"):
                list(documents(DataConfig(source="tinyshakespeare")))
            files[address] = "sha256:" + hashlib.sha256(b"not Shakespeare").hexdigest()
            assert list(documents(DataConfig(source="tinyshakespeare"))) == [b"not Shakespeare"]
        finally:
            server.shutdown()


def test_the_network_is_allowed_for_this_process_and_its_children(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPWIDE_NETWORK", "0")
    assert not network_allowed()
    allow_network()
    assert network_allowed()
    assert os.environ["DEEPWIDE_NETWORK"] == "1"
