"""Laws by name, laws from files, and every way a file can be no law."""

import contextlib
import json
import math
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from deepwide.errors import DeepwideError
from deepwide.laws import (
    COMPUTE_LAWS,
    ComputeLaw,
    DepthLaw,
    Law,
    RidgeLaw,
    TransitionLaw,
    compute_law,
    depth_law,
    find_law,
    load_law,
    published_laws,
    rival_laws,
    save_compute_law,
    save_law,
    transition_law,
)
from deepwide.laws.book import any_law
from deepwide.planning import audit, plan

GOOD: dict[str, Any] = {"kind": "transition", "name": "mine", "a": 5.0, "b": 0.05}
SURFACE: dict[str, Any] = {
    "kind": "surface", "name": "x", "width_term": [1.0, 0.2], "depth_term": [-0.2, 0.4],
    "params_term": [6.0, 0.3], "tokens_term": [10.0, 0.4],
    "floor": 0.4, "layer_matrices": 12.0, "embedding_rows": 1000.0, "tokens_per_param": 20.0,
}  # fmt: skip


def written(folder: Path, law: Any, **more: Any) -> Path:
    path = folder / "law.json"
    path.write_text(json.dumps({"format": "deepwide-law-1", "law": law} | more))
    return path


def test_levine_is_the_default_and_first() -> None:
    assert next(iter(published_laws())) == "levine"
    assert find_law() is find_law("levine") is transition_law() is depth_law()


def test_every_published_law_has_a_citation_a_status_and_what_it_was_tested_on() -> None:
    assert list(published_laws()) == [
        "levine", "pooled", "gemstones", "nanochat", "liu", "depth-delusion", "kaplan", "morph", "tay", "wies"
    ]  # fmt: skip
    for law in published_laws().values():
        assert law.about, law.name
        assert law.citation, law.name
        assert law.tested, law.name
        assert "read" in law.status or law.name == "pooled", law.name


def test_recalled_numbers_are_labelled() -> None:
    assert "recalled" in transition_law().status
    assert "set by us" in find_law("depth-delusion").status


@pytest.mark.parametrize("law", published_laws().values(), ids=lambda law: law.name)
def test_a_saved_law_loads_as_itself(law: Law, tmp_path: Path) -> None:
    if isinstance(law, DepthLaw):
        law.depth(1e9)  # what a law has computed is no part of it
    path = save_law(law, tmp_path / "deep" / "law.json")
    back = load_law(path)
    assert back == law
    assert type(back) is type(law)
    assert find_law(path) == find_law(str(path)) == law
    assert save_law(back, tmp_path / "again.json").read_text() == path.read_text()


@given(
    st.floats(-19, 19),
    st.floats(1e-6, 4.9),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(-0.99, 0.99),
    st.text(min_size=1, max_size=80),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_fitted_law_survives_its_file(
    tmp_path: Path, a: float, b: float, sa: float, sb: float, r: float, name: str
) -> None:
    ab = r * sa * sb
    law = TransitionLaw(name=name, a=a, b=b, covariance=((sa * sa, ab), (ab, sb * sb)))
    assert load_law(save_law(law, tmp_path / "law.json")) == law


def test_a_law_passes_through() -> None:
    law = TransitionLaw(**GOOD)
    assert find_law(law) is law


def test_a_file_without_the_suffix_is_found_too(tmp_path: Path) -> None:
    path = save_law(TransitionLaw(**GOOD), tmp_path / "mylaw")
    assert find_law(str(path)).name == "mine"


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(DeepwideError, match=r"no law 'levin'.*did you mean 'levine'\?$"):
        find_law("levin")
    with pytest.raises(DeepwideError, match=r"no law 'zzz'.*it must be one of 'depth-delusion', .* and 2 more\.$"):
        find_law("zzz")


@pytest.mark.parametrize("name", ["x" * 100_000, "", "a\0b", ".", "/"])
def test_a_name_that_is_neither_law_nor_file_gets_a_sentence(name: str) -> None:
    with pytest.raises(DeepwideError, match=r"no law '|there is no law at") as error:
        find_law(name)
    assert len(str(error.value)) < 400


def test_a_law_that_predicts_no_depth_cannot_plan() -> None:
    for name in ("kaplan", "morph", "tay", "wies"):
        with pytest.raises(
            DeepwideError, match=rf"'{name}' predicts no depth .*use one of levine, pooled, gemstones, nanochat"
        ):
            depth_law(name)


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        (b"", "is not JSON "),
        (b"{", "is not JSON "),
        (b"\x80\x81", "is not JSON "),
        (b"[" * 100_000, "is nested too deep"),
        (b"1" * 5000, "is not JSON "),
        (b"[]", "is not a law: it must be an object with"),
        (b"null", "is not a law: it must be an object with"),
        (b"NaN", "is not a law: it must be an object with"),
        (b"{}", "is not a law: it must be an object with"),
        (b'{"format": "deepwide-law-2"}', "is not a law: it must be an object with"),
        (b'{"format": ["deepwide-law-1"]}', "is not a law: it must be an object with"),
        (b'{"format": "deepwide-law-1"}', "is not a law deepwide can read: law: "),
        (b" " * (2**20 + 1), "is not a law: it is larger than 1 MiB"),
    ],
    ids=lambda value: value[:30] if isinstance(value, bytes) else "",
)
def test_a_file_that_is_no_law_gets_a_sentence(tmp_path: Path, raw: bytes, complaint: str) -> None:
    path = tmp_path / "law.json"
    path.write_bytes(raw)
    with pytest.raises(DeepwideError, match=complaint) as error:
        load_law(path)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    ("law", "complaint"),
    [
        (None, "law: "),
        ([], "law: "),
        ("levine", "law: "),
        ({}, "law: "),
        ({"name": "x"}, "kind"),
        (GOOD | {"kind": "transitional"}, "transitional"),
        (GOOD | {"kind": "x" * 100_000}, "kind"),
        (GOOD | {"kind": ["transition"]}, "kind"),
        (GOOD | {"name": ""}, "transition.name: "),
        (GOOD | {"name": "n" * 81}, "transition.name: "),
        (GOOD | {"a": None}, "transition.a: "),
        (GOOD | {"a": "five"}, "transition.a: "),
        (GOOD | {"a": float("nan")}, "transition.a: "),
        (GOOD | {"a": float("inf")}, "transition.a: "),
        (GOOD | {"b": 0}, "transition.b: "),
        (GOOD | {"b": -1}, "transition.b: "),
        (GOOD | {"b": 10**400}, "transition.b: "),
        (GOOD | {"covariance": [[1]]}, "transition.covariance"),
        (GOOD | {"covariance": [[1, 0], [0, float("nan")]]}, "transition.covariance"),
        (GOOD | {"covariance": [[1, 2], [2, 1]]}, "covariance must be symmetric and positive"),
        (GOOD | {"covariance": {"a": 1}}, "transition.covariance"),
        (GOOD | {"fitted_block_params": [1e6, False]}, "transition.fitted_block_params"),
        (GOOD | {"fitted_block_params": [0, 1e6]}, "transition.fitted_block_params"),
        (GOOD | {"c": 1}, "transition.c: "),
        ({k: v for k, v in GOOD.items() if k != "b"}, "transition.b: "),
        ({"kind": "aspect", "name": "x", "ratio": 0}, "aspect.ratio: "),
        ({"kind": "power", "name": "x", "exponent": 2, "anchor_params": 1, "anchor_depth": 1}, "power.exponent: "),
        ({"kind": "surface", "name": "x", "width_term": [1]}, "surface.width_term"),
        (SURFACE | {"embedding_rows": 2**63}, "surface.embedding_rows: "),
        (SURFACE | {"layer_matrices": 1e-300}, "surface.layer_matrices: "),
        ({"kind": "ceiling", "name": "x", "low": -1, "high": 3}, "ceiling.low: "),
    ],
)
def test_a_document_that_is_no_law_names_what_is_wrong(tmp_path: Path, law: Any, complaint: str) -> None:
    with pytest.raises(DeepwideError, match="is not a law deepwide can read: ") as error:
        load_law(written(tmp_path, law))
    assert complaint in str(error.value)
    assert len(str(error.value)) < 600
    assert "\n" not in str(error.value)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    for name in ("nothing.json", "folder.json"):
        with pytest.raises(DeepwideError, match=rf"there is no law at .*{name}\.$"):
            find_law(tmp_path / name)


def test_a_file_that_may_not_be_read_gets_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    law = written(tmp_path, GOOD)
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DeepwideError, match=r"cannot read .*: Permission denied\.$"):
        load_law(law)


def test_our_own_file_passes_the_validation_that_it_is_spared() -> None:
    text = files("deepwide.laws").joinpath("published.json").read_text(encoding="utf-8")
    laws = [any_law().validate_python(law) for law in json.loads(text)]
    pooled = json.loads(files("deepwide.laws").joinpath("pooled.json").read_text(encoding="utf-8"))
    laws.insert(1, any_law().validate_python(pooled["law"]))
    assert laws == list(published_laws().values())


def test_a_fitted_law_with_a_published_name_replaces_no_published_one() -> None:
    mine = TransitionLaw(name="levine", a=4.5, b=0.08)
    assert rival_laws(mine) == (mine, *published_laws().values())
    assert rival_laws(find_law("nanochat"))[0].name == "nanochat"
    assert len(rival_laws(find_law("nanochat"))) == len(published_laws())


IMPOSSIBLE: list[dict[str, Any]] = [
    {"kind": "aspect", "ratio": 1e300},
    {"kind": "aspect", "ratio": 1e-308},
    {"kind": "power", "exponent": 0.5, "anchor_params": 1e300, "anchor_depth": 32},
    {"kind": "power", "exponent": 0.5, "anchor_params": 1e9, "anchor_depth": 1e-300},
    {"kind": "power", "exponent": 0.5, "anchor_params": 1e-300, "anchor_depth": 1e300},
    {"kind": "ridge", "base_a": None, "base_b": None, "shift": 19.0, "drift": 0.99, "centre_params": 1e-300},
    GOOD | {"bowl": {"curvature": 1e18, "error": 0.1, "x_range": [-1, 1]}},
    GOOD | {"bowl": {"curvature": 0.1, "error": 0.1, "x_range": [-1, 1e300]}},
]


@pytest.mark.parametrize("law", IMPOSSIBLE, ids=str)
def test_a_law_of_impossible_depths_gets_a_sentence_in_plan_and_audit(tmp_path: Path, law: dict[str, Any]) -> None:
    """Reliability review, D15: these were tracebacks."""
    path = str(written(tmp_path, {"name": "wild"} | law))
    for ask in (lambda: plan("1.3B", law=path), lambda: audit("gpt2", law=path)):
        with pytest.raises(DeepwideError) as error:
            ask()
        assert "\n" not in str(error.value)
        assert len(str(error.value)) < 400
        assert str(error.value).endswith((".", "?"))


def test_a_fitted_law_need_only_make_sense_near_the_sizes_it_was_fitted_on() -> None:
    steep = {"base_a": None, "base_b": None, "shift": 1.0, "drift": 0.8, "centre_params": 1e5}
    near = RidgeLaw(name="steep", fitted_block_params=(1e4, 1e6), **steep)
    assert depth_law(near) is near
    with pytest.raises(DeepwideError, match=r"the law 'steep' gives .* layers at"):
        depth_law(RidgeLaw(name="steep", **steep))


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
FIELDS = sorted({field for law in published_laws().values() for field in type(law).model_fields})


@given(st.sampled_from(sorted(published_laws())), st.dictionaries(st.sampled_from(FIELDS), JUNK, max_size=3))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=2000)
def test_a_spoilt_law_is_a_law_or_a_sentence(tmp_path: Path, name: str, changes: dict[str, Any]) -> None:
    law = published_laws()[name].model_dump(mode="json") | changes
    try:
        loaded = load_law(written(tmp_path, law))
    except DeepwideError as complaint:
        assert len(str(complaint)) < 600  # noqa: PT017 - either outcome is right
        assert "\n" not in str(complaint)  # noqa: PT017
        assert str(complaint).endswith((".", "?"))  # noqa: PT017
    else:
        assert isinstance(loaded, Law)


def test_what_is_no_law_gets_a_sentence(tmp_path: Path) -> None:
    for search in (find_law, depth_law):
        with pytest.raises(DeepwideError, match="a law is a name, a path or a Law, not '3'"):
            search(3)  # type: ignore[arg-type]
    with pytest.raises(DeepwideError, match="only a Law is saved as one, not '3'"):
        save_law(3, tmp_path / "x.json")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_only_laws_that_can_plan_are_offered_to_a_plan() -> None:
    with pytest.raises(DeepwideError, match=r"'depth-delusion', 'gemstones', 'levine', 'liu', 'nanochat', 'pooled'\.$"):
        depth_law("nosuch")
    with pytest.raises(DeepwideError, match="did you mean 'kaplan'"):
        find_law("kaplann")


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


COEFFICIENTS = {"E": 1, "A": 1, "B": 1, "alpha": 1, "beta": 1}
WRONG = [0, -1, math.inf, True, "a", None, math.nan]
NO_LAWS: list[object] = [{"E": 1}, [], None, *(COEFFICIENTS | {"alpha": alpha} for alpha in WRONG)]
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
    assert not ComputeLaw("", E=1.0, A=1e-25, B=1e25, alpha=0.1, beta=0.1).has_optimum  # tokens per parameter overflow
    assert not ComputeLaw("", E=1.0, A=1.0, B=1.0, alpha=0.0, beta=0.1).has_optimum
    assert COMPUTE_LAWS["epoch"].has_optimum


def test_a_compute_law_with_a_whole_number_that_no_float_holds_gets_a_sentence(tmp_path: Path) -> None:
    path = save_compute_law(ComputeLaw("me", 1.8, 482.0, 2085.4, 10**400, 0.37), tmp_path / "law.json")
    with pytest.raises(DeepwideError, match="must be numbers above 0"):
        compute_law(path)


@pytest.mark.parametrize(
    "changes", [{"A": 1e-320}, {"A": 1e-300}, {"B": 1e-300}, {"A": 1e300, "alpha": 0.01, "beta": 0.01}]
)
def test_a_compute_law_whose_best_size_is_none_gets_a_sentence(tmp_path: Path, changes: dict[str, float]) -> None:
    """Found by fuzzing: the scale underflowed, and tokens are FLOPs over it."""
    law = ComputeLaw(**(COMPUTE_LAWS["epoch"]._asdict() | changes))
    path = save_compute_law(law, tmp_path / "law.json")
    with pytest.raises(DeepwideError, match="put the least loss at no real size"):
        plan("1e21", kind="flops", compute=str(path))


def test_a_compute_law_of_huge_exponents_gets_a_sentence(tmp_path: Path) -> None:
    steep = ComputeLaw("me", 1.8, 482.0, 2085.4, 482.0, 0.37)
    assert steep.flops_for(1e12) == math.inf
    path = save_compute_law(steep, tmp_path / "law.json")
    for budget in ("1e17", "1e21", "1e26"):
        with contextlib.suppress(DeepwideError):  # a plan, or one sentence
            plan(budget, kind="flops", compute=str(path))
