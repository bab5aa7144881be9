"""The planner's verbs as a user types them."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import deepwide
from cli.calling import ask, call
from deepwide.errors import is_installed

Run = subprocess.CompletedProcess[str]


def run(*words: str) -> Run:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "deepwide", *words]
    clean = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=clean)


def test_plan_prints_a_shape_its_neighbours_every_law_and_the_reason() -> None:
    done = run("plan", "1.3B")
    assert done.returncode == 0
    for words in (
        "42 layers × 1,536 wide",
        "95% from its coefficients: 40.4 to 44.0",
        "← this plan",
        "depth-delusion",
        "kaplan",
        "Why",
        "gpt2-xl",
    ):
        assert words in done.stdout


def test_plan_as_json_is_the_library_s_plan() -> None:
    from deepwide import plan

    assert ask("plan", "350M", "--total", "--tied") == plan(350_000_000, kind="total", tied=True).model_dump(
        mode="json"
    )


@pytest.mark.parametrize(
    ("words", "check"),
    [
        (("1e21", "--flops"), lambda p: "Epoch" in p["tokens_from"]),
        (("1e21", "--flops", "--compute", "hoffmann"), lambda p: "Hoffmann" in p["tokens_from"]),
        (("24GB", "--memory"), lambda p: p["inference_bytes"] <= 24e9),
        (("7B", "--depth", "32"), lambda p: p["shape"]["depth"] == 32),
        (("7B", "--width", "4096"), lambda p: p["shape"]["width"] == 4096),
        (("7B", "--kv-heads", "8"), lambda p: p["shape"]["kv_heads"] == 8 and p["shape"]["heads"] % 8 == 0),
        (("7B", "--pipeline-stages", "8"), lambda p: p["shape"]["depth"] % 8 == 0),
        (("7B", "--tensor-parallel", "6"), lambda p: p["shape"]["heads"] % 6 == p["shape"]["ff_width"] % 6 == 0),
        (("7B", "--at-most"), lambda p: -0.02 < p["miss"] <= 0),
        (("1e22", "--flops", "--tokens", "2T"), lambda p: p["tokens"] == 2 * 10**12 and abs(p["miss"]) < 0.01),
        (("1e22", "--flops", "--context", "32768"), lambda p: abs(p["train_flops"] / 1e22 - 1) < 0.01),
        (("7B", "--width-multiple", "256"), lambda p: p["shape"]["width"] % 256 == 0),
        (("7B", "--head-dim", "96"), lambda p: p["shape"]["head_dim"] == 96),
        (("7B", "--feed-forward", "plain"), lambda p: p["family"] == "gpt2" and p["shape"]["ff"] == "plain"),
        (("7B", "--law", "nanochat"), lambda p: abs(p["shape"]["width"] / p["shape"]["depth"] - 64) < 4),
        (("7B", "--tokens", "2T"), lambda p: p["tokens"] == 2 * 10**12),
    ],
)
def test_each_kind_of_budget_and_constraint_is_obeyed(words: tuple[str, ...], check: Callable[[Any], bool]) -> None:
    assert check(ask("plan", *words))


def test_a_saved_config_audits_as_the_plan(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    assert call("plan", "1.3B", "--save", str(config)).returncode == 0
    (verdict,) = ask("audit", str(config))
    assert (verdict["verdict"]["outcome"], verdict["shape"]["depth"], verdict["shape"]["width"]) == ("within", 42, 1536)
    assert verdict["params"] == ask("plan", "1.3B")["params"]


@pytest.mark.parametrize(("suffix", "start"), [(".svg", b"<svg"), (".png", b"\x89PNG"), (".html", b"<!DOCTYPE html>")])
def test_plot_writes_the_format_its_name_asks_for(tmp_path: Path, suffix: str, start: bytes) -> None:
    picture = tmp_path / "deep" / f"map{suffix}"
    done = call("audit", "gpt3-175b", "llama-3-8b", "--plot", str(picture))
    assert done.returncode == 0, done.stderr
    assert picture.read_bytes().startswith(start)
    assert str(picture) in done.stdout.replace("\n", "")
    if suffix == ".html":
        assert b"cdn." not in picture.read_bytes(), "the page must work without a network"


def test_gpt3_is_too_deep_and_llama_3_too_shallow() -> None:
    verdicts = {v["name"]: v for v in ask("audit", "gpt3-175b", "llama-3-8b", "smollm2-360m")}
    assert [verdicts[n]["verdict"]["outcome"] for n in ("gpt3-175b", "llama-3-8b", "smollm2-360m")] == [
        "too deep",
        "too shallow",
        "within",
    ]
    assert verdicts["gpt3-175b"]["depth_over_law"]["value"] == pytest.approx(1.193, abs=5e-4)


def test_audit_takes_a_shape_by_options_or_overrides_a_model_s() -> None:
    (plain,) = ask("audit", "--depth", "48", "--width", "1600", "--heads", "25")
    assert plain["shape"]["ff_width"] == 6400
    (changed,) = ask("audit", "gpt2", "--depth", "24")
    assert changed["shape"]["depth"] == 24


def test_an_unknown_family_names_what_is_missing_and_takes_it_as_an_option(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": "newnet", "d_model": 512, "n_heads": 8, "vocab_size": 1000}))
    done = call("audit", str(config))
    assert done.returncode == 2
    assert "lacks depth, ff_width" in done.stderr
    (verdict,) = ask("audit", str(config), "--depth", "8", "--ff-width", "2048")
    assert verdict["shape"]["depth"] == 8
    assert verdict["notes"][0]["code"] == "unknown-family"


def test_count_shows_every_part_with_its_formula_and_convention() -> None:
    done = call("count", "llama-3-8b")
    for words in ("8,030,261,248", "torch convention", "2·B·(L·T)·(2·kv = 2,048)", "12·P"):
        assert words in done.stdout
    counted = ask("count", "llama-3-8b", "--convention", "kaplan", "--sequence", "128")
    assert counted["flops"]["training_per_token"] == 6 * (6_979_588_096 - 266_240)


def test_count_saves_a_model_s_config_in_its_own_family_or_another(tmp_path: Path) -> None:
    for words, kind in (((), "qwen3"), (("--family", "llama"), None)):
        target = tmp_path / f"{kind}.json"
        done = call("count", "qwen3-8b", "--save", str(target), *words)
        if kind is None:
            assert done.returncode == 2
            assert "qk_norm is 'head'" in done.stderr
        else:
            assert json.loads(target.read_text())["model_type"] == kind


def test_models_lists_searches_and_says_when_nothing_matches() -> None:
    assert "llama-3-8b" in call("models", "llama").stdout
    assert {m["org"] for m in ask("models", "qwen")} == {"Qwen"}
    done = call("models", "lama-3-9b")
    assert done.returncode == 2
    assert "did you mean" in done.stderr


def test_laws_are_listed_with_citation_and_status() -> None:
    laws = ask("laws")
    assert [law["name"] for law in laws] == [
        "levine", "pooled", "gemstones", "nanochat", "liu", "depth-delusion", "kaplan", "morph", "tay", "wies"
    ]  # fmt: skip
    assert all(law["citation"] and law["status"] and law["tested"] for law in laws)


BAD = [
    ("plan", "1.3X"), ("plan",), ("plan", "1e99"), ("plan", "nan"), ("plan", "12"), ("plan", "--", "-5"),
    ("plan", "1.3B", "--law", "levin"), ("plan", "1.3B", "--law", "tay"), ("plan", "1.3B", "--law", "none.json"),
    ("plan", "1.3B", "--family", "lama"), ("plan", "1.3B", "--family", "mixtral"),
    ("plan", "1.3B", "--plot", "x.gif"), ("plan", "1.3B", "--depth", "3", "--width", "64"),
    ("plan", "1.3B", "--width", "1001"), ("plan", "1.3B", "--depth", "0"), ("plan", "1.3B", "--width", "0"),
    ("plan", "1.3B", "--width", "-64"), ("plan", "1.3B", "--head-dim", "0"), ("plan", "1.3B", "--head-dim", "7"),
    ("plan", "1.3B", "--layer-us", "nan"), ("plan", "1.3B", "--compute", "gpt"),
    ("audit", "--depth", "3", "--width", "64", "--family", "lama"), ("plan", "1.3B", "--vocab", "-3"),
    ("plan", "1.3B", "--vocab", "many"), ("plan", "1M", "--tensor-parallel", "64"),
    ("plan", "1.3B", "--pipeline-stages", "0"), ("plan", "1.3B", "--family", "gpt2", "--kv-heads", "4"),
    ("plan", "1.3B", "--family", "gpt2", "--feed-forward", "gated"), ("plan", "1.3B", "--feed-forward", "square"),
    ("plan", "1.3B", "--total", "--flops"), ("plan", "1.3B", "--batch", "0"),
    ("plan", "24GB", "--memory", "--inference-precision", "fp3"), ("plan", "1KB", "--memory"),
    ("plan", "1.3B", "--ff-ratio", "nan"), ("plan", "1e21", "--flops", "--compute", "gpt"),
    ("plan", "1.3B", "--save", "/proc/none/config.json"),
    ("plan", "1.3B", "--tokens", "0"), ("plan", "1.3B", "--context", "0"), ("audit",), ("audit", "lama"),
    ("audit", "meta/none"), ("audit", "/"), ("audit", "none.json"), ("audit", "--depth", "3"),
    ("audit", "--depth", "0", "--width", "64"), ("audit", "gpt2", "--heads", "7"), ("audit", "gpt2", "--plot", "x"),
    ("audit", "--depth", "9" * 40, "--width", "64"), ("count",), ("count", "gpt2", "--convention", "foo"),
    ("count", "gpt2", "--batch", "0"), ("count", "gpt2", "--sequence", "-1"),
    ("count", "gpt2", "--attention", "fast"), ("count", "gpt2", "--training-precision", "fp4"),
    ("count", "palm-540b", "--save", "x.json"), ("models", "zzzzzz"), ("plam", "3"), ("plan", "1.3B", "--jsn"),
    ("laws", "extra"),
]  # fmt: skip


@pytest.mark.parametrize("words", BAD, ids=" ".join)
def test_bad_input_gets_one_sentence_and_exit_code_2(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call(*words)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert done.stdout == ""
    assert done.stderr.startswith("deepwide: ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == [], "a refused command leaves nothing behind"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("plan 1.3B --kv-heads 0", "deepwide: --kv-heads: input should be greater"),
        ("plan 1.3B --shared -1", "deepwide: --shared: input should be greater"),
        ("plan 1.3B --family gpt2 --kv-heads 4", "leave --kv-heads out"),
        ("plan 1e18 --flops --width-multiple 8192", "loosen --kv-heads, --tensor-parallel, --pipeline-stages, "),
        ("plan 1.3B --data-parallel 0", "deepwide: --data-parallel must be"),
        ("audit gpt2 --gpu-flops 0", "deepwide: --gpu-flops must be"),
        ("count my_kv_heads.json", "my_kv_heads.json"),
    ],
)
def test_errors_name_options_as_they_are_written(words: str, said: str) -> None:
    error = call(*words.split()).stderr
    assert said in error
    assert not re.search(r"(?<!my_)(kv_heads|head_dim|data_parallel|gpu_flops)", error)


def test_the_cheapest_repair_is_said_beside_a_price() -> None:
    said = " ".join(call("audit", "gpt3-175b", "--price", "2.5").stdout.split())
    repair = r"cheapest repair \+[\d.]+% (?:parameters|tokens|of both) for \+([\d,]+); dearer: .*? for \+([\d,]+)"
    costs = re.search(repair, said)
    assert costs, said
    first, next_one = (int(cost.replace(",", "")) for cost in costs.groups())
    assert 1e5 < first <= next_one < 1e8
    assert "cheapest repair none needed" in " ".join(call("audit", "llama-3-8b", "--price", "2.5").stdout.split())


def test_the_nearest_valid_name_is_offered() -> None:
    assert "did you mean 'levine'?" in call("plan", "1B", "--law", "levin").stderr
    assert "did you mean 'llama'?" in call("plan", "1B", "--family", "lama").stderr
    assert "'plan'" in call("plam", "1B").stderr
    assert "--json" in call("plan", "1B", "--jsn").stderr


def test_a_real_process_says_the_same_and_exits_the_same() -> None:
    done = run("plan", "1B", "--law", "levin")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", call("plan", "1B", "--law", "levin").stderr)


@pytest.mark.parametrize("verb", ["plan", "audit", "count", "models", "laws", "tour"])
def test_every_verb_has_help_with_an_example(verb: str) -> None:
    done = call(verb, "--help")
    assert done.returncode == 0
    assert f"deepwide {verb}" in done.stdout.split("Example")[-1]


def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = f"set -o pipefail; {sys.executable} -m deepwide models | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_shape_by_options_is_counted_as_the_family_asked_for() -> None:
    words = ("--depth", "32", "--width", "4096", "--heads", "32", "--ff-width", "11008", "--vocab", "32000")
    counted = ask("count", *words, "--context", "4096", "--family", "llama")
    assert counted["params"]["total"] == 6_738_415_616  # Llama-2-7B
    assert [note["code"] for note in ask("count", *words)["notes"]] == ["assumed-family"]


def test_saving_follows_a_link_and_does_not_replace_a_device(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    link.symlink_to(real)
    assert call("plan", "1.3B", "--save", str(link)).returncode == 0
    assert link.is_symlink()
    assert json.loads(real.read_text())["model_type"] == "llama"
    assert call("plan", "1.3B", "--save", "/dev/full").returncode == 2
    assert Path("/dev/full").is_char_device()


def test_a_config_is_saved_in_a_folder_under_its_usual_name(tmp_path: Path) -> None:
    """Newcomer's review, S19: writing to a folder failed with a temporary name."""
    for words in (("plan", "1.3B"), ("count", "gpt2")):
        done = call(*words, "--save", str(tmp_path))
        assert done.returncode == 0, done.stderr
        assert "config.json" in done.stdout.replace("\n", "")
        assert json.loads((tmp_path / "config.json").read_text())["model_type"] in ("llama", "gpt2")


def test_one_config_that_cannot_be_read_is_one_row(tmp_path: Path) -> None:
    """Newcomer's review, S6: it ended the whole table."""
    bad = tmp_path / "config.json"
    bad.write_text(json.dumps({"model_type": "some_ssm", "state_size": 16}))
    done = call("audit", "gpt2", str(bad), "llama-3-8b")
    assert done.returncode == 2
    assert "llama-3-8b" in done.stdout
    assert "has state-space layers (state_size)" in done.stdout.replace("\n", " ")
    assert done.stderr == "deepwide: 1 of 3 models could not be read.\n"
    as_json = call("audit", "gpt2", str(bad), "--json")
    documents = json.loads(as_json.stdout)
    assert (documents[0]["name"], "state_size" in documents[1]["error"]) == ("gpt2", True)


def test_units_are_read_as_people_write_them() -> None:
    """Newcomer's review, S9."""
    shape = ask("plan", "1.3B", "--vocab", "128k", "--context", "8Ki", "--bandwidth", "3TB/s")["shape"]
    assert (shape["vocab"], shape["context"]) == (128_000, 8192)
    assert ask("plan", "24G", "--memory")["budget"] == 24 * 10**9
    assert ask("count", "gpt2", "--vocab", "64k")["shape"]["vocab"] == 64_000
    assert "training FLOPs" in call("plan", "1e22").stderr
    for words in (("plan", "1e22"), ("plan", "1.3B", "--memory"), ("plan", "12")):
        assert "Q " not in call(*words).stderr


def test_the_tour_plans_audits_and_draws(tmp_path: Path) -> None:
    done = run("tour", "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    for words in ("42 layers × 1,536 wide", "gpt3-175b", "too deep", "map.svg", "Best depth at", "The loop closes"):
        assert words in done.stdout
    assert (tmp_path / "out" / "map.svg").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("words", "end"),
    [
        (("plan", "24GB"), "Add --memory."),
        (("plan", "1e22"), "if this is a number of training FLOPs or of bytes, say so. Add --flops or --memory."),
        (("plan", "-5"), "and no argument may be negative. See: deepwide plan --help"),
        (("models", "zzzz"), "See: deepwide models."),
        (("audit", "nosuch"), "See: deepwide models."),
        (("audit", "no/such"), "Add --network."),
        (
            ("count", "lacking.json"),
            "ff_width (intermediate_size). Add --depth and --ff-width.",
        ),
        (("count", "unknown.json"), "lacks ff_width: give it as well. Add --ff-width."),
    ],
)
def test_a_sentence_ends_with_the_option_or_command_that_helps(
    words: tuple[str, ...], end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "vocab_size": 99}
    Path("lacking.json").write_text(json.dumps(sizes | {"model_type": "llama"}))
    Path("unknown.json").write_text(json.dumps(sizes | {"num_hidden_layers": 4, "model_type": "newnet"}))
    done = call(*words)
    assert done.returncode == 2
    assert done.stderr.endswith(f"{end}\n")
    if "--depth" in end:
        assert ask(*words, "--depth", "24", "--ff-width", "176")["shape"]["depth"] == 24


def test_a_sequence_is_written_like_a_context() -> None:
    for written, length in (("1e6", 1_000_000), ("8Ki", 8192), ("512", 512)):
        assert ask("count", "gpt2", "--sequence", written)["flops"]["sequence"] == length


def test_count_shows_the_fullest_device_of_a_split_model() -> None:
    done = call("count", "gpt2", "--tensor-parallel", "4", "--data-parallel", "8", "--zero", "1")
    assert "The fullest device (stage 1): tensor 4 × pipeline 1 × data 8, ZeRO 1" in done.stdout
    assert ask("count", "gpt2", "--zero", "1", "--data-parallel", "2")["device"]["zero"] == 1


def test_a_limit_on_time_is_shown_with_its_frontier() -> None:
    done = call("plan", "100M", "--machine", "eager", "--latency", "3ms")
    assert "(limit 3 ms)" in done.stdout
    assert "Loss against decode time, within the budget" in done.stdout
    assert "assumed, not measured" not in done.stdout
    assert ask("plan", "100M", "--machine", "eager", "--latency", "3ms")["speed"]["limit_seconds"] == 0.003


def test_a_brief_plan_is_five_lines_and_a_price_is_money() -> None:
    assert call("plan", "1.3B", "--brief").stdout.splitlines() == deepwide.plan("1.3B").brief().splitlines()
    priced = " ".join(call("audit", "llama-3-8b", "--price", "2", "--gpu-flops", "5e14").stdout.split())
    assert "in money" in priced
    # What is priced, and everything that goes into it: FLOPs, FLOPs per second, hours, the price of one.
    assert "FLOPs (51.5B per token × 161B tokens; causal attention over 8,192 counted) / 5e+14 per second" in priced
    assert "= 4,593 GPU-hours at 2;" in priced
    assert "with both grown alike, beside 9,185 for the training itself" in priced
    assert "20 tokens per parameter, 161B, which is assumed" in priced
    stated = call("audit", "llama-3-8b", "--price", "2", "--tokens", "15T").stdout
    assert "which is assumed" not in " ".join(stated.split())
    assert ask("audit", "llama-3-8b", "--tokens", "15T")[0]["worth"]["tokens"] == 15e12
    assert call("audit", "llama-3-8b", "--price", "-2").returncode == 2


def test_help_says_what_files_are_written() -> None:
    """Folders were created and .json drawn, and no help said so."""
    words = " ".join(run("plan", "--help").stdout.replace("│", " ").split())
    for said in ("missing folders are created", ".html or .json (Vega-Lite)", "of all devices together"):
        assert said in words


def test_a_missing_folder_is_created_for_a_config_and_a_picture(tmp_path: Path) -> None:
    config, picture = tmp_path / "new" / "config.json", tmp_path / "other" / "map.json"
    assert call("plan", "100M", "--brief", "--save", str(config), "--plot", str(picture)).returncode == 0
    assert json.loads(config.read_text())["model_type"] == "llama"
    assert "vega-lite" in json.loads(picture.read_text())["$schema"]


def test_a_plan_with_experts_warns_saves_and_is_built_to_its_count(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    words = ("plan", "300M", "--experts", "16", "--active", "2", "--shared", "1", "--kv-heads", "2")
    done = call(*words, "--save", str(path))
    text = " ".join(done.stdout.split())
    assert "Warning: no public runs vary depth and width with experts" in text
    assert "16 + 1 shared gated experts of" in text
    assert "active blocks" in text
    answer = ask(*words)
    assert answer["mixture"]["total_params"] == answer["params"]["total"]
    assert f"{answer['mixture']['routed_params']:,} routed" in text
    assert ask("count", str(path))["params"] == answer["params"]
    if is_installed("transformers"):
        built = ask("count", str(path), "--build")
        assert (built["total"], built["experts"]) == (answer["params"]["total"], answer["mixture"]["routed_params"])
        assert "built on the meta device" in call("count", str(path), "--build").stdout.replace("\n", " ")
    split = call("count", str(path), "--data-parallel", "4", "--expert-parallel", "4", "--zero", "1").stdout
    assert "experts over 4" in split


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("plan", "1B", "--experts", "8"), "how many are active per token"),
        (("plan", "1B", "--active", "8"), "active is for mixtures of experts"),
        (("plan", "1B", "--experts", "8", "--active", "2", "--family", "llama"), "llama has no experts"),
        (("plan", "1B", "--family", "jamba"), "the family jamba is read and counted, but not written or planned"),
        (("plan", "1B", "--picture", "frontier"), "give --plot FILE too"),
        (("plan", "1B", "--picture", "frontier", "--plot", "x.svg"), "a frontier needs a machine or a limit on time"),
        (("count", "--build"), "--build counts a config.json as it is"),
        (("count", "no.json", "--build", "--depth", "3"), "--build counts a config.json as it is"),
        (("count", "gpt2", "--expert-parallel", "2"), "--expert-parallel is for models with experts"),
    ],
)
def test_what_experts_and_pictures_need_is_said(words: tuple[str, ...], sentence: str) -> None:
    done = call(*words)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert not done.stdout


def test_a_plan_within_a_time_draws_the_frontier(tmp_path: Path) -> None:
    spec, other = tmp_path / "frontier.json", tmp_path / "map.json"
    words = ("plan", "1.3B", "--machine", "eager", "--latency", "8ms", "--brief")
    assert "7.95 ms per token on eager" in call(*words, "--plot", str(spec)).stdout
    assert "time per decoded token (ms)" in spec.read_text()
    call(*words, "--plot", str(other), "--picture", "map")
    assert "time per decoded token" not in other.read_text()


def test_a_price_is_shown_in_a_table_of_audits_too() -> None:
    """A fresh user's find: --price changed nothing for several models, or for one with experts."""
    table = run("audit", "llama-3-8b", "qwen3-30b-a3b", "--price", "2.5").stdout
    assert "in money" in table
    assert "active" in table
    assert "by total" in table
    assert "in money" not in run("audit", "llama-3-8b", "gpt2").stdout
    assert "at 2.5 per GPU-hour of 4e+14 FLOPs per second. Trained on: llama-3-8b 161B tokens for" in " ".join(
        table.split()
    )
    assert "in money" in run("audit", "qwen3-30b-a3b", "--price", "2.5").stdout


def test_a_limit_on_time_is_in_the_heading_and_says_what_is_fixed() -> None:
    text = run("plan", "7B", "--depth", "12", "--latency", "2ms").stdout
    assert text.startswith("Plan for 7B block parameters within 2 ms per token")
    assert "(depth is fixed)" in " ".join(text.split())
    assert "The same size at other depths" in text
    free = run("plan", "7B", "--latency", "2ms").stdout
    assert "is fixed" not in free
    assert "the limit on time chose another" in " ".join(free.split())


def test_a_model_too_large_for_its_machine_is_a_warning_at_the_top() -> None:
    text = " ".join(run("plan", "70B", "--machine", "eager").stdout.split())
    assert text.index("Warning: the model does not fit on eager") < text.index("best depth")


def test_a_split_plan_shows_the_memory_of_the_fullest_device_by_depth() -> None:
    text = run(
        "plan", "1.3B", "--kv-heads", "8", "--tensor-parallel", "4", "--data-parallel", "2", "--zero", "1"
    ).stdout
    assert "Memory of the fullest device" in text
    assert "tensor 4 × pipeline 1 × data 2, ZeRO 1" in " ".join(text.split())
    assert "Memory of the fullest device" not in run("plan", "1.3B").stdout
