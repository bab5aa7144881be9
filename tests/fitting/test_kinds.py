"""One function for all kinds of fit, and back from JSON."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.fitting import (
    JointFit,
    RidgeFit,
    SurfaceFit,
    TransitionFit,
    fit,
    fit_transition,
    load_fit,
    read_runs,
    simulate,
)
from deepwide.fitting.summary import crossing_sentence
from fitting.builders import LAW, chinchilla_like, sweep


@pytest.fixture(scope="module")
def fitted() -> TransitionFit:
    return fit_transition(sweep(), bootstrap=200)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "deepwide-fit-1", "fit": {"kind": "transition"}}'])
def test_a_file_that_is_no_fit_gets_a_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "fit.json").write_text(text)
    with pytest.raises(DeepwideError):
        load_fit(tmp_path / "fit.json")


def test_settings_that_make_no_sense_get_a_sentence(fitted: TransitionFit) -> None:
    for wrong in ({"bootstrap": -1}, {"slope": 0.0}, {"slope": -1.0}):
        with pytest.raises(DeepwideError):
            fit_transition(sweep(), **wrong)
    with pytest.raises(DeepwideError, match="by likelihood or bootstrap"):
        fitted.interval("b", "boot")  # type: ignore[arg-type]


TABLE = [
    {"depth": run["depth"], "width": run["width"], "block_params": run["block_params"], "loss": run["loss"],
     "seed": run["seed"]}
    for run in sweep().rows()
]  # fmt: skip


def test_a_fit_takes_runs_files_frames_and_dicts_alike(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(TABLE)
    frame.write_csv(tmp_path / "runs.csv")
    half = len(TABLE) // 2
    frame[:half].write_csv(tmp_path / "first.csv")
    frame[half:].write_parquet(tmp_path / "second.parquet")
    expected = fit_transition(read_runs(TABLE), bootstrap=0)
    for runs in (TABLE, tuple(TABLE), frame, tmp_path / "runs.csv", str(tmp_path / "runs.csv"), read_runs(TABLE),
                 [tmp_path / "first.csv", tmp_path / "second.parquet"]):  # fmt: skip
        assert fit(runs, "transition", bootstrap=0).values == pytest.approx(expected.values)


class PandasLike:
    """What of a pandas data frame is used: the house has no pandas."""

    columns = ("depth", "width", "loss")

    def to_dict(self, orient: str) -> list[dict[str, object]]:
        assert orient == "records"
        return [{"depth": np.int64(d), "width": w, "loss": 3 / w + d} for d in (1, 2) for w in (8, 16, 32)]


def test_a_frame_of_pandas_is_read_by_its_records() -> None:
    assert fit(PandasLike(), "transition", bootstrap=0).runs == 6


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("joint", JointFit), ("transition", TransitionFit), ("ridge", RidgeFit), ("surface", SurfaceFit)],
)
def test_a_kind_gives_its_fit(kind: Any, expected: type) -> None:
    runs = chinchilla_like(0.01) if kind == "surface" else sweep()
    answer = fit(runs, kind, bootstrap=200)
    assert isinstance(answer, expected)
    assert answer.counting == ("total" if kind == "surface" else "block")
    verdict = answer.verdict()
    assert verdict.outcome in ("seen", "not seen", "undecided")
    assert verdict.claim
    assert verdict.rule.startswith("seen if")


@pytest.mark.parametrize("kind", [None, "transition", "ridge", "surface"])
def test_losses_that_are_all_the_same_are_refused(kind: Any) -> None:
    with pytest.raises(DeepwideError, match="losses are 2, so nothing can be fitted: check which column is the loss"):
        fit([row | {"loss": 2.0} for row in TABLE], kind)


def test_a_setting_of_another_kind_is_refused() -> None:
    for kind, given_settings in (
        ("transition", {"drift": True}), ("ridge", {"slope": 0.0}), ("surface", {"noise": "depth"}),
        ("ridge", {"delta": 0.0}),
    ):  # fmt: skip
        with pytest.raises(DeepwideError, match=f"'{next(iter(given_settings))}' belongs to a"):
            fit(sweep(), kind, **given_settings)  # type: ignore[arg-type]
    with pytest.raises(DeepwideError, match="did you mean 'ridge'"):
        fit(sweep(), "rigde")  # type: ignore[arg-type]
    with pytest.raises(DeepwideError, match="belong to a table"):
        fit(sweep(), where={"depth": 2})


def test_without_a_kind_the_settings_choose_it() -> None:
    assert fit(sweep()).kind == "joint"
    assert fit(sweep(), noise="depth", bootstrap=0).kind == "transition"
    assert fit(sweep(), noise="depth", base="power", bootstrap=0).kind == "ridge"
    with pytest.raises(DeepwideError, match="belongs to a"):
        fit(sweep(), slope=0.1, base="power")


@pytest.mark.parametrize("kind", ["transition", "ridge", "surface"])
def test_fits_saved_before_notes_had_codes_still_load(kind: str) -> None:
    path = Path(__file__).parent / f"older/{kind}.json"
    old = json.loads(path.read_text())["fit"]
    loaded = load_fit(path)
    assert list(loaded.values) == old["values"]
    assert [str(warning) for warning in loaded.warnings] == old["warnings"]
    assert [str(note) for note in loaded.notes] == old["notes"]
    assert loaded.summary()
    if isinstance(loaded, TransitionFit):
        names = ("shallow", "deep", "status", "size", "low", "high", "regimes")
        rows = [[getattr(crossing, name) for name in names] for crossing in loaded.crossings]
        assert rows == [pytest.approx(pair[:7]) for pair in old["pairs"]]
        assert [list(c.resampled or []) for c in loaded.crossings] == [pair[10] or [] for pair in old["pairs"]]
        assert [crossing_sentence(crossing) for crossing in loaded.crossings] == [pair[7] for pair in old["pairs"]]
    if isinstance(loaded, SurfaceFit):
        assert (old["unit"], loaded.unit) == ("cell", "group")


NAMES = st.sampled_from(
    ["depth", "width", "loss", "seed", "tokens", "status", "lr", "total_params", "block_params", "x"]
)
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 50), st.integers(), st.floats(), st.text(max_size=4),
    st.sampled_from([1e-300, 1e300, 2.0, 2.5, "nan", "1e9", "diverged", [1], {"a": 1}]),
)  # fmt: skip


def one_sentence(error: DeepwideError) -> None:
    assert len(str(error)) < 600
    assert "\n" not in str(error)
    assert str(error)[-1] in ".?"


@given(
    st.lists(st.dictionaries(NAMES, VALUES, max_size=7), max_size=12), st.sampled_from(["joint", "transition", "ridge"])
)
def test_a_table_of_garbage_gives_a_fit_or_one_sentence(rows: list[dict[str, Any]], kind: Any) -> None:
    try:
        fit(rows, kind, bootstrap=200, base="power" if kind == "ridge" else None)
    except DeepwideError as error:
        one_sentence(error)


GOOD = st.floats(1e-3, 1e12)
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("joint", {}), ("transition", {}),
    ("ridge", {"base": "power"}), ("ridge", {}), ("surface", {}), ("surface", {"terms": "shape"})
]  # fmt: skip


@settings(max_examples=60)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"depth": st.integers(1, 4), "width": GOOD, "loss": GOOD, "tokens": GOOD, "total_params": GOOD}
        ),
        min_size=7,
        max_size=16,
    ),
    st.sampled_from(ASKED),
)  # fmt: skip
def test_numbers_without_any_order_give_a_fit_or_one_sentence(rows: list[dict[str, Any]], asked: Any) -> None:
    kind, more = asked
    try:
        answer = fit(rows, kind, bootstrap=200, **more)
        answer.summary()
        json.dumps(answer.model_dump(mode="json"))
    except DeepwideError as error:
        one_sentence(error)


@given(st.binary(max_size=200), st.sampled_from([".csv", ".tsv", ".json", ".jsonl", ".parquet", ".csv.gz", ".json.gz"]))
def test_a_file_of_garbage_gives_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, end: str
) -> None:
    path = tmp_path_factory.mktemp("garbage") / f"t{end}"
    path.write_bytes(content)
    with pytest.raises(DeepwideError) as caught:
        fit(path, "transition", bootstrap=0)
    one_sentence(caught.value)


@pytest.mark.parametrize("kind", ["joint", "transition", "ridge"])
def test_time_grows_like_the_number_of_runs(kind: str) -> None:
    """Four times the runs: quadratic would be sixteen times the processor time."""

    def seconds(sizes: int) -> float:
        runs = simulate(LAW, depths=(1, 2, 4, 8), sizes=np.geomspace(1e4, 1e8, sizes), seeds=2)
        start = time.process_time()
        fit(runs, kind, bootstrap=200)  # type: ignore[arg-type]
        return time.process_time() - start

    seconds(20)  # what is imported or built once
    many, few = zip(*((seconds(1000), seconds(250)) for _ in range(3)), strict=True)  # by turns: one may be disturbed
    assert min(many) < 10 * max(min(few), 0.05)
