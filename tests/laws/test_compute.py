"""Compute-optimal size and tokens, against a numerical minimum of the loss itself."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from deepwide.errors import DeepwideError
from deepwide.laws import COMPUTE_LAWS, ComputeLaw, compute_law, save_compute_law

FLOPS = st.floats(12, 30).map(lambda power: 10**power)
NAMES = st.sampled_from(sorted(COMPUTE_LAWS))


@given(NAMES, FLOPS)
def test_the_optimum_spends_the_flops(name: str, C: float) -> None:
    N, D = compute_law(name).optimum(C)
    spent = 6 * N * D
    assert spent == pytest.approx(C, rel=1e-12)


@given(NAMES, FLOPS)
def test_the_optimum_is_the_least_loss_at_those_flops(name: str, C: float) -> None:
    law = compute_law(name)

    def excess(log_N: float) -> float:
        N = math.exp(log_N)
        return law.A / N**law.alpha + law.B / (C / 6 / N) ** law.beta

    N, _ = law.optimum(C)
    best = minimize_scalar(excess, bounds=(math.log(N) - 5, math.log(N) + 5), method="bounded", options={"xatol": 1e-8})
    assert excess(math.log(N)) <= best.fun * (1 + 1e-12)
    assert best.x == pytest.approx(math.log(N), abs=1e-3)


@given(NAMES, FLOPS, st.floats(1.001, 1e6))
def test_more_flops_buy_more_of_both(name: str, C: float, factor: float) -> None:
    (N, D), (more_N, more_D) = (compute_law(name).optimum(c) for c in (C, C * factor))
    assert more_N > N
    assert more_D > D


def test_the_numbers_are_the_published_ones() -> None:
    assert tuple(COMPUTE_LAWS["epoch"])[1:] == (1.8169, 482.01, 2085.43, 0.3478, 0.3658)
    assert tuple(COMPUTE_LAWS["hoffmann"])[1:] == (1.69, 406.4, 410.7, 0.34, 0.28)


def test_epochs_refit_gives_chinchilla_its_own_shape() -> None:
    """5.76e23 FLOPs were spent on 70B parameters and 1.4T tokens; the refit says 72B and 1.33T."""
    size, tokens = compute_law("epoch").optimum(5.76e23)
    assert size == pytest.approx(70e9, rel=0.1)
    assert tokens == pytest.approx(1.4e12, rel=0.1)
    assert tokens / size == pytest.approx(20, rel=0.1)


def test_the_rounded_numbers_as_printed_do_not() -> None:
    """The reason Epoch refitted them: over 90 tokens per parameter at Chinchilla's own budget."""
    N, D = compute_law("hoffmann").optimum(5.76e23)
    assert D / N > 90


def test_an_unknown_compute_law_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(DeepwideError, match=r"no compute law 'epock': did you mean 'epoch'\?$"):
        compute_law("epock")


def test_a_saved_compute_law_is_found_by_its_path(tmp_path: Path) -> None:
    law = ComputeLaw("mine", 1.8, 400.0, 1500.0, 0.34, 0.36)
    path = save_compute_law(law, tmp_path / "law.json")
    assert compute_law(path) == compute_law(str(path)) == law


FIELDS = {"E": 1, "A": 1, "B": 1, "alpha": 1, "beta": 1}
WRONG = [0, -1, math.inf, True, "a", None, math.nan]
NO_LAWS: list[object] = [{"E": 1}, [], None, *(FIELDS | {"alpha": alpha} for alpha in WRONG)]
NO_FILES = ["", "[]", "{}", *(json.dumps({"format": "deepwide-compute-law-1", "law": law}) for law in NO_LAWS)]


@pytest.mark.parametrize("text", NO_FILES)
def test_a_file_that_is_no_compute_law_gets_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "law.json").write_text(text)
    with pytest.raises(DeepwideError, match="is not a compute law") as caught:
        compute_law(tmp_path / "law.json")
    assert "\n" not in str(caught.value)
    with pytest.raises(DeepwideError, match="There is no file"):
        compute_law(tmp_path / "other.json")


def test_a_law_whose_sizes_no_float_can_hold_has_no_optimum() -> None:
    """Found by fuzzing a fit: the scale underflowed, and dividing by it failed."""
    tiny = ComputeLaw("", E=1.0, A=1e-300, B=1e300, alpha=0.1, beta=0.1)
    assert not tiny.has_optimum
    assert not ComputeLaw("", E=1.0, A=1e300, B=1e-300, alpha=0.1, beta=0.1).has_optimum
    assert not ComputeLaw("", E=1.0, A=1.0, B=1.0, alpha=0.0, beta=0.1).has_optimum
    assert COMPUTE_LAWS["epoch"].has_optimum
