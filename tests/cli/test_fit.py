"""`deepwide fit` as a user types it."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from cli.calling import call
from deepwide.fitting import load_fit, simulate
from deepwide.laws import TransitionLaw, load_law

LAW = TransitionLaw(name="truth", a=3.2, b=0.25)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("fit") / "runs.csv"
    runs = simulate(LAW, depths=(1, 2, 4, 8), sizes=list(np.geomspace(1e4, 4e6, 7)), noise=0.002)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["depth", "width", "block_params", "seed", "val_loss"])
        rows.writerows(zip(runs.depth, runs.width, runs.block_params, runs.seed, runs.loss, strict=True))
    return str(path)


def test_the_loop_closes_from_a_table_to_a_plan(table: str, tmp_path: Path) -> None:
    law = str(tmp_path / "law.json")
    made = call("fit", table, "--kind", "transition", "--bootstrap", "50", "--law", law)
    assert made.returncode == 0, made.stderr
    assert "ln width = a + b·depth" in made.stdout
    assert "the paper: 5.039, 0.0555" in made.stdout
    assert f"--law {law}" in made.stdout.splitlines()[-1]
    planned = json.loads(call("plan", "1M", "--law", law, "--json").stdout)
    assert planned["law"] == "fitted"
    assert abs(planned["law_depth"]["value"] - LAW.depth(1e6).value[0]) < 1.5
    audited = json.loads(call("audit", "gpt2", "--law", law, "--json").stdout)
    assert audited["law"] == "fitted" if isinstance(audited, dict) else audited[0]["law"] == "fitted"


def test_the_first_line_and_the_saved_law_have_the_same_interval(table: str, tmp_path: Path) -> None:
    law = str(tmp_path / "law.json")
    shown = call("fit", table, "--law", law)
    assert shown.returncode == 0, shown.stderr
    first, second = shown.stdout.splitlines()[:2]
    assert first.startswith("Best depth at ")
    assert second.startswith("Beyond the runs: ")
    answer = json.loads(call("fit", table, "--json").stdout)
    assert answer["kind"] == "joint"
    largest = answer["params_range"][1]
    best = load_law(law).depth(largest).at()  # type: ignore[attr-defined]
    assert f"{best.value:.3g} ({best.low:.3g} to {best.high:.3g}) layers" in first
    planned = json.loads(call("plan", "1M", "--law", law, "--json").stdout)
    assert planned["law_depth"]["low"] < LAW.depth(1e6).value[0] < planned["law_depth"]["high"]


def test_json_is_one_document_with_both_kinds_of_interval(table: str) -> None:
    made = json.loads(call("fit", table, "--kind", "transition", "--bootstrap", "50", "--json").stdout)
    assert made["kind"] == "transition"
    for by in ("likelihood", "bootstrap"):
        low, high = made["intervals"][by]["b"]
        assert low < made["values"][made["names"].index("b")] < high
    assert made["law"]["kind"] == "transition"
    assert [(pair["shallow"], pair["deep"]) for pair in made["crossings"]] == [(1, 2), (2, 4), (4, 8)]
    assert made["verdict"]["outcome"] == "seen"
    assert list(made["n_transition"]) == ["1", "2", "4", "8"]
    assert all(low < value < high for value, low, high in made["n_transition"].values())
    assert made["resample_count"] > 0
    assert "resamples" not in made


def test_a_ridge_about_a_law_of_ones_own(table: str, tmp_path: Path) -> None:
    law = str(tmp_path / "law.json")
    assert call("fit", table, "--kind", "transition", "--law", law, "--bootstrap", "0").returncode == 0
    made = call("fit", table, "--kind", "ridge", "--base", law, "--drift", "--law", str(tmp_path / "ridge.json"))
    assert made.returncode == 0, made.stderr
    assert "A depth off by a factor 2 costs" in made.stdout
    assert call("plan", "1M", "--law", str(tmp_path / "ridge.json")).returncode == 0


def test_rows_are_chosen_by_limits(table: str) -> None:
    made = json.loads(
        call("fit", table, "--noise", "same", "--where", "depth<8", "--where", "depth>1", "--json").stdout
    )
    assert made["curves"]["depths"] == [2, 4]
    texts = [note["text"] for note in made["notes"]]
    assert "14 of 56 rows left out as asked: depth of 8 or more" in texts
    assert "14 of 42 rows left out as asked: depth of 1 or less" in texts
    made = json.loads(
        call("fit", table, "--noise", "same", "--where", "depth<=4", "--where", "depth>=2", "--json").stdout
    )
    assert made["curves"]["depths"] == [2, 4]
    assert "14 of 56 rows left out as asked: depth above 4" in [note["text"] for note in made["notes"]]
    made = json.loads(call("fit", table, "--noise", "same", "--where", "depth != 8", "--json").stdout)
    assert made["curves"]["depths"] == [1, 2, 4]


def test_epochs_refit_of_chinchilla_is_one_command(shared_data: Path) -> None:
    data = shared_data / "gemstones/data/epoch_chinchilla_svg_extracted_data.csv"
    columns = ["--column", "total_params=Model Size", "--column", "train_flops=Training FLOP"]
    made = call("fit", str(data), "--kind", "surface", *columns, "--where", "loss<3.43", "--bootstrap", "50", "--json")
    found = json.loads(made.stdout)
    values = dict(zip(found["names"], found["values"], strict=True))
    assert found["runs"] == 240
    assert 1.769 < values["E"] < 1.871
    assert 0.317 < values["alpha"] < 0.373
    assert 0.331 < values["beta"] < 0.415


@pytest.mark.parametrize("picture", ["curves", "growth", "map", "residuals", "resamples"])
def test_every_picture_is_drawn(table: str, tmp_path: Path, picture: str) -> None:
    out = tmp_path / f"{picture}.svg"
    made = call("fit", table, "--bootstrap", "200", "--picture", picture, "--plot", str(out))
    assert made.returncode == 0, made.stderr
    assert out.read_text().startswith("<svg")


def test_the_whole_fit_is_saved_and_read_back(table: str, tmp_path: Path) -> None:
    out = tmp_path / "fit.json"
    assert call("fit", table, "--bootstrap", "200", "--out", str(out)).returncode == 0
    assert load_fit(out).runs == 56


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--kind", "trnsition"], "not one of 'joint', 'transition', 'ridge', 'surface'"),
        (["--column", "loss"], "not name=value"),
        (["--column", "loss="], "map one of them to loss"),
        (["--profile", "many"], "not a size"),
        (["--kind", "ridge", "--profile", "1M"], "--profile belongs to a joint fit"),
        (["--column", "los=val_loss"], "did you mean 'loss'"),
        (["--column", "loss=vall_loss"], "did you mean 'val_loss'"),
        (["--where", "tokens=1B"], "no run has tokens within 1%"),
        (["--where", "tokens=x"], "not a size"),
        (["--where", "tokens"], "chooses nothing"),
        (["--where", "los<2"], "did you mean 'loss'"),
        (["--where", "loss<0.1"], "no run is left that has loss < 0.1"),
        (["--where", "depth>=100"], "no run is left that has depth >= 100"),
        (["--where", "depth=2", "--where", "depth=4"], "was given twice"),
        (["--slope", "-1"], "between 0 and 5"),
        (["--picture", "map"], "give --plot FILE too"),
        (["--kind", "surface"], "(--column tokens=YOUR_COLUMN)"),
        (["--unit", "run"], "not one of 'group', 'shape'"),
        (["--count", "all"], "not one of 'block', 'total'"),
        (["--count", "total"], "column total_params="),
        (["--pair", "2"], "--pair 2,8"),
        (["--pair", "2,3"], "no curve was fitted for depth 3"),
        (["--plot", "x.gif"], "must end in"),
        (["--picture", "curve"], "not one of 'curves'"),
        (["--kind", "ridge", "--picture", "curves", "--plot", "x.svg"], "transition fit"),
        (["--kind", "ridge", "--base", "nanochat"], "is none: use levine"),
        (["--embedding-rows", "100", "--column", "total_params=seed"], "block_params is -"),
        (["--kind", "transition", "--drift"], "'drift' belongs to a ridge fit; this is a transition fit"),
        (["--kind", "surface", "--noise", "depth"], "'noise' belongs to a transition or ridge fit"),
        (["--kind", "ridge", "--delta", "0.01"], "'delta' belongs to a surface fit"),
        (["--kind", "surface", "--delta", "0"], "delta must be above 0"),
        (["--noise", "loud"], "not one of 'same', 'depth'"),
        (["--bootstrap", "1"], "200 to 10,000 of them (bootstrap), not 1"),
        (["--kind", "joint", "--terms", "shape"], "'terms' belongs to a surface fit"),
        (["--kind", "ridge", "--slope", "0.1"], "'slope' belongs to a transition fit"),
    ],
)
def test_bad_input_gets_one_sentence(table: str, words: list[str], complaint: str) -> None:
    made = call("fit", table, "--bootstrap", "200", *words)
    assert made.returncode == 2
    assert complaint in made.stderr
    assert made.stderr.startswith("deepwide: ")
    assert made.stderr.count("\n") == 1


def test_without_a_law_the_fit_is_shown_but_saving_one_is_refused_and_nothing_written(tmp_path: Path) -> None:
    path, law = tmp_path / "two.csv", tmp_path / "law.json"
    path.write_text("depth,width,loss\n" + "".join(f"{d},{w},{3 / w + d}\n" for d in (1, 2) for w in (8, 16, 32, 64)))
    made = call("fit", str(path), "--kind", "transition", "--law", str(law), "--bootstrap", "0")
    assert made.returncode == 2
    assert "no law to save" in made.stderr
    assert "ridge" not in made.stderr  # two depths make no bowl
    assert "Two regimes" in made.stdout
    assert not law.exists()


def test_a_refused_law_points_to_the_ridge_that_gives_one(tmp_path: Path) -> None:
    table, law = str(Path(__file__).parents[2] / "results/fit/depth-width-long.csv"), tmp_path / "law.json"
    done = call("fit", table, "--kind", "transition", "--law", str(law), "--bootstrap", "0")
    assert done.returncode == 2
    assert done.stderr.endswith("; a ridge with base power may give one. Add --kind ridge --base power.\n")
    assert (
        call("fit", table, "--kind", "ridge", "--base", "power", "--law", str(law), "--bootstrap", "0").returncode == 0
    )
    assert law.exists()


def test_a_table_without_a_loss_points_to_the_option(tmp_path: Path) -> None:
    (tmp_path / "wrong.csv").write_text("depth,width,badness\n1,8,3\n2,8,2\n")
    assert call("fit", str(tmp_path / "wrong.csv")).stderr.endswith(
        "its columns are depth, width, badness: map one of them to loss. Add --column loss=NAME.\n"
    )


def test_a_surface_in_tokens_gives_a_law_that_plan_can_load(tmp_path: Path) -> None:
    path, law = tmp_path / "points.csv", tmp_path / "compute.json"
    random = np.random.default_rng(0)
    places = [(N, D) for N in np.geomspace(3e7, 3e9, 6) for D in np.geomspace(1e9, 1e11, 6)]
    losses = [(1.8 + 400 / N**0.34 + 1500 / D**0.36) * np.exp(random.normal(0, 0.003)) for N, D in places]
    lines = [f"{N},{D},{loss}" for (N, D), loss in zip(places, losses, strict=True)]
    path.write_text("\n".join(["N,D,loss", *lines]) + "\n")
    made = call("fit", str(path), "--kind", "surface", "--bootstrap", "0", "--law", str(law))
    assert made.returncode == 0, made.stderr
    assert made.stdout.splitlines()[-1].endswith(f"--flops --compute {law}")
    planned = json.loads(call("plan", "1e20", "--flops", "--compute", str(law), "--json").stdout)
    assert planned["shape"]["depth"] > 1
    assert "fitted on" in json.dumps(planned)


def test_a_warning_names_the_option_that_answers_it(table: str) -> None:
    made = call("fit", table, "--kind", "ridge", "--bootstrap", "0")
    assert made.returncode == 0, made.stderr
    assert "allow a drift" in made.stdout
    assert "[--drift]" in made.stdout


def test_a_ridge_is_drawn_as_a_map_by_default(table: str, tmp_path: Path) -> None:
    out = tmp_path / "ridge.json"
    made = call("fit", table, "--kind", "ridge", "--base", "power", "--bootstrap", "0", "--plot", str(out))
    assert made.returncode == 0, made.stderr
    assert "The fitted law on the map" in out.read_text()


def test_a_profile_and_a_column_that_is_not_read(table: str) -> None:
    shown = call("fit", table, "--profile", "1M", "--column", "seed=")
    assert shown.returncode == 0, shown.stderr
    assert "At 1M: the probability that the best depth is shallower" in shown.stdout
    assert "Growth beyond the runs" not in shown.stdout
    assert (
        "\nGrowth beyond the runs counts both ways in probabilities and limits"
        in call("fit", table, "--profile", "400M").stdout
    )
    assert "the column for seed is not read, as asked" in shown.stdout
    made = json.loads(call("fit", table, "--profile", "1M", "--json").stdout)
    assert made["profile"]["params"] == 1e6
    assert [row["below"] for row in made["profile"]["depths"]] == sorted(
        row["below"] for row in made["profile"]["depths"]
    )
