"""Drawing takes seconds: figures without content instead, but where a test asks for `drawn`."""

from types import SimpleNamespace

import pytest
import vl_convert

from deepwide import figures


@pytest.fixture(autouse=True)
def _quick_pictures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "drawn" not in request.fixturenames:
        monkeypatch.setattr(figures, "offered", lambda *_: lambda *_: SimpleNamespace(to_dict=dict))
        monkeypatch.setattr(vl_convert, "vegalite_to_svg", lambda _: "<svg xmlns='http://www.w3.org/2000/svg'/>")


@pytest.fixture
def drawn() -> None:
    """Real pictures."""
