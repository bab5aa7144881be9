"""Pictures of a fit by name."""

from pathlib import Path

import pytest

from deepwide.errors import DeepwideError
from deepwide.figures import draw_fit
from deepwide.fitting import fit_ridge, fit_transition, simulate
from deepwide.laws import TransitionLaw
from figures.fits import SIZES, large


def test_a_fit_is_drawn_by_name(tmp_path: Path) -> None:
    law = TransitionLaw(name="truth", a=3.2, b=0.25)
    runs = simulate(law, depths=(2, 4), sizes=[1e4, 3e4, 1e5, 3e5, 1e6], noise=0.002)
    assert b"<svg" in draw_fit(fit_transition(runs, bootstrap=0), tmp_path / "curves.svg").read_bytes()[:300]
    ridge = fit_ridge(runs, base=law, bootstrap=0)
    assert draw_fit(ridge, tmp_path / "residuals.html").stat().st_size > 1000
    for picture, said in (("portrait", "no picture 'portrait'"), ("curves", "of a transition fit")):
        with pytest.raises(DeepwideError, match=said):
            draw_fit(ridge, tmp_path / "x.svg", picture)


def test_a_ridge_is_drawn_as_a_map_unless_it_gives_no_law(tmp_path: Path) -> None:
    ridge = draw_fit(large(), tmp_path / "map.json")
    assert "The fitted law on the map" in ridge.read_text()
    flat = simulate(TransitionLaw(name="t", a=3.2, b=0.25), depths=(1, 2, 4), sizes=SIZES.tolist(), curvature=0.0)
    without = fit_ridge(flat, bootstrap=0)
    assert without.law() is None
    assert "What the fit misses" in draw_fit(without, tmp_path / "residuals.json").read_text()
