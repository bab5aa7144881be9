"""The catalogue against the published totals, the table it was made from, and the models transformers builds."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import deepwide
from deepwide.catalogue import Model, all_models, find_model, find_shape, nearest_models, search_models
from deepwide.errors import DeepwideError
from deepwide.shape import Shape, write_config

MODELS = {model.name: model for model in all_models()}

# Names of the table that the catalogue shortens.
OTHER_NAMES = {
    "Llama-2-70b-hf": "llama-2-70b",
    "OLMo-1B-hf": "olmo-1b",
    "OLMo-7B-hf": "olmo-7b",
    "OLMo-2-1124-7B": "olmo-2-7b",
    "OLMo-2-1124-13B": "olmo-2-13b",
    "Gemma-3-1b-it": "gemma-3-1b",
    "Gemma-3-4b-it": "gemma-3-4b",
    "Gemma-3-12b-it": "gemma-3-12b",
    "Gemma-3-27b-it": "gemma-3-27b",
    "Phi-3-mini-4k-instruct": "phi-3-mini",
    "Phi-4-mini-instruct": "phi-4-mini",
    "Mathstral-7B-v0.1": "mathstral-7b",
    "Mistral-7B-v0.1": "mistral-7b",
    "Mixtral-8x22B-v0.1": "mixtral-8x22b",
    "Mistral-Large-Instruct-2407": "mistral-large-2",
    "micro-llama-300M": "microllama-300m",
}
# The table's block parameters are not ours there, and why.
OTHER_BLOCKS = {
    "Gopher-": "the table has 13·L·d², with the relative-position projections our Shape has no field for",
    "Chinchilla-70B": "the same",
    "Jurassic-1 Jumbo": "the table has 12·L·d², without norms and biases",
    "gpt-j-6b": "the table has 12·L·d², without norms and biases",
}
# The heads the paper prints do not multiply to the width; the catalogue's do, and its notes say so.
OTHER_HEADS = ("GPT-3 XL", "GPT-3 13B")


def table(shared_data: Path) -> list[dict[str, str]]:
    with (shared_data / "model_shapes.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def entry_of(row: dict[str, str]) -> Model:
    return find_model(OTHER_NAMES.get(row["name"], row["name"]))


def test_names_are_unique_even_without_case_and_punctuation() -> None:
    plain = [re.sub("[^a-z0-9.]", "", name.lower()) for name in MODELS]
    assert len(set(plain)) == len(MODELS) == len(all_models()) > 100


@given(st.sampled_from(sorted(MODELS)), st.sampled_from(["", " ", "_", "--"]), st.sampled_from([str.upper, str.title]))
def test_a_name_is_found_in_sloppy_spelling(name: str, between: str, case: Any) -> None:
    sloppy = case(name).replace("-", between)
    for spelling in (name, sloppy, f"  {sloppy} ", f"{MODELS[name].org}/{sloppy}"):
        assert find_model(spelling).name == name
    with pytest.raises(DeepwideError, match=f"{re.escape(name)} is by {MODELS[name].org}"):
        find_model(f"some-org/{sloppy}")


@pytest.mark.parametrize(
    "spelling",
    ["meta-llama/Llama-3.2-1B", "facebook/opt-125m", "Qwen/Qwen3-8B", "deepseek-ai/DeepSeek-V3", "tiiuae/falcon-40b",
     "mistralai/Mixtral-8x7B", "google/gemma-2-9b", "allenai/OLMo-7B", "openai-community/gpt2"],
)  # fmt: skip
def test_the_hubs_name_of_a_model_is_found(spelling: str) -> None:
    assert find_model(spelling).org


@pytest.mark.parametrize(
    ("spelling", "name"),
    [("microsoft/phi-1_5", "phi-1.5"), ("opt_1_3b", "opt-1.3b"), ("opt_13b", "opt-13b"), ("LLaMA_3_8B", "llama-3-8b")],
)
def test_an_underscore_may_stand_for_a_dot_or_for_nothing(spelling: str, name: str) -> None:
    assert find_model(spelling).name == name


@pytest.mark.parametrize("name", ["", "/", "gpt5", "lama-3-8b", "x" * 10_000, "…"])
def test_an_unknown_name_is_refused_with_near_ones(name: str) -> None:
    with pytest.raises(DeepwideError, match=r"no model '.*' in the catalogue: (did you mean '|none of the)") as error:
        find_model(name)
    assert len(str(error.value)) < 400


def test_the_nearest_name_is_offered() -> None:
    with pytest.raises(DeepwideError, match=r"did you mean 'llama-3-8b'"):
        find_model("lama-3-8b")


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model.published_total])
def test_the_published_total_is_what_we_count(name: str) -> None:
    assert MODELS[name].shape.total_params == MODELS[name].published_total


def test_every_entry_says_where_it_is_from_and_those_without_a_total_why() -> None:
    for model in all_models():
        assert model.org, model.name
        assert model.source, model.name
        assert model.published_total or model.note, model.name


@pytest.mark.parametrize(
    ("name", "ratio"),
    [("llama-3.1-405b", 1.44), ("palm-540b", 1.32), ("gpt3-175b", 1.19), ("qwen2.5-32b", 0.96), ("falcon-180b", 0.99),
     ("smollm2-360m", 1.0), ("gemma-3-27b", 0.95)],
)  # fmt: skip
def test_depth_over_the_laws_depth_is_as_the_notes_say(name: str, ratio: float) -> None:
    from deepwide.laws import transition_law

    shape = MODELS[name].shape
    assert shape.depth / transition_law().depth(shape.block_params).value[0] == pytest.approx(ratio, abs=0.006)


def test_every_row_of_the_table_is_in_the_catalogue_with_its_total(shared_data: Path) -> None:
    rows = [row for row in table(shared_data) if row["params_total"]]
    assert len(rows) > 100
    for row in rows:
        assert entry_of(row).shape.total_params == int(row["params_total"]), row["name"]
        assert entry_of(row).published_total == int(row["params_total"]), row["name"]


def test_every_row_of_the_table_is_in_the_catalogue_with_its_shape(shared_data: Path) -> None:
    for row in table(shared_data):
        s = entry_of(row).shape
        ours = (s.depth, s.width, s.ff_width, s.vocab)
        assert ours == tuple(int(row[key]) for key in ("n_layer", "d_model", "d_ff", "vocab")), row["name"]
        if row["name"] not in OTHER_HEADS:
            heads = (s.heads, s.kv_heads, s.head_dim)
            assert heads == tuple(int(row[key]) for key in ("n_head", "n_kv_head", "head_dim")), row["name"]
        assert row["tied"] in ("", str(s.tied)), row["name"]


def test_block_parameters_are_the_tables_where_it_counts_norms_and_biases(shared_data: Path) -> None:
    compared = 0
    for row in table(shared_data):
        same = entry_of(row).shape.block_params == int(row["params_nonemb"])
        assert same != row["name"].startswith(tuple(OTHER_BLOCKS)), row["name"]
        compared += same
    assert compared > 100


@pytest.mark.slow
def test_every_entry_of_a_family_counts_the_same_in_transformers() -> None:
    torch = pytest.importorskip("torch", reason="needs the train extra: pip install 'deepwide[dev]'")
    transformers = pytest.importorskip("transformers", reason="needs the dev extra: pip install 'deepwide[dev]'")
    wrong = []
    for model in all_models():
        if model.family is None:
            continue
        config = {k: v for k, v in write_config(model.shape, model.family).items() if k != "architectures"}
        with torch.device("meta"):
            built = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(**config))
        total = sum(p.numel() for p in built.parameters())
        if total != model.shape.total_params:
            wrong.append((model.name, total, model.shape.total_params))
    assert wrong == []


@given(st.integers(1, 150), st.integers(64, 20_000), st.integers(1, 6))
def test_the_nearest_models_are_dense_near_in_size_and_nearest_first(depth: int, width: int, count: int) -> None:
    shape = Shape(depth=depth, width=width)
    near = nearest_models(shape, count)
    assert len(near) <= count
    for model in near:
        assert model.shape.experts is None
        assert 1 / 3 < model.shape.block_params / shape.block_params < 3


@pytest.mark.parametrize("name", ["gpt3-175b", "qwen3-8b", "llama-3.2-1b", "bloom-176b"])
def test_a_model_is_nearest_to_itself(name: str) -> None:
    assert nearest_models(MODELS[name].shape, 1) == [MODELS[name]]


def test_a_size_nobody_built_has_no_near_model() -> None:
    assert nearest_models(Shape(depth=1, width=8)) == []


def test_a_far_off_name_is_not_answered_with_far_off_names() -> None:
    for search in (find_model, search_models):
        with pytest.raises(DeepwideError, match=r"none of the \d+ names is near.$") as caught:
            search("zzzz")
        assert caught.value.remedies == ("catalogue",)
    with pytest.raises(DeepwideError, match="did you mean 'gpt2'") as caught:
        find_model("gpt22")
    assert caught.value.remedies == ()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model of 99 layers that is called as one of the catalogue."""
    monkeypatch.chdir(tmp_path)
    write_config(find_model("qwen3-8b").shape.but(depth=99), "qwen3", tmp_path / "my" / "Qwen3-8B" / "config.json")
    return tmp_path


@pytest.mark.parametrize("spelling", ["my/Qwen3-8B", "./my/Qwen3-8B", "my/Qwen3-8B/config.json", "my/../my/Qwen3-8B"])
def test_a_path_that_exists_is_read_by_every_function(folder: Path, spelling: str) -> None:
    """Newcomer's review, S2: the library took the catalogue's model of 36 layers instead."""
    for model in (spelling, Path(spelling), str(folder / spelling)):
        assert deepwide.audit(model).shape.depth == 99
        assert deepwide.count(model).shape.depth == 99
        assert find_shape(model).shape.depth == 99


@pytest.mark.parametrize(
    "missing",
    [
        "./nonexist/Qwen3-8B",
        "../Qwen3-8B",
        "/Qwen3-8B",
        "~/Qwen3-8B",
        "qwen3-8b.json",
        "a/b/Qwen3-8B",
        "./qwen3-8b",
        ".",
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_looks_like_a_path_is_never_a_name(missing: str) -> None:
    with pytest.raises(DeepwideError, match="there is no config at"):
        find_shape(missing)


@pytest.mark.parametrize("owner", ["typo", "acme", "my2"])
@pytest.mark.usefixtures("folder")
def test_another_owner_s_model_is_not_the_catalogue_s(owner: str) -> None:
    with pytest.raises(DeepwideError, match=r"did you mean 'qwen3-8b'\? Without network access"):
        find_shape(f"{owner}/Qwen3-8B")


def test_a_name_a_shape_and_sizes_are_found() -> None:
    gpt2 = find_model("gpt2").shape
    assert find_shape("GPT-2") == ("gpt2", gpt2, "gpt2", True, ())
    assert find_shape(gpt2).shape is gpt2
    by_sizes = find_shape(depth=12, width=768, context=1024)
    assert by_sizes.shape == gpt2.but(vocab=50257)
    assert [note.code for note in by_sizes.notes] == ["assumed-family"]
    assert find_shape(depth=2, width=128, family="llama").notes == ()


def test_units_are_read_in_sizes() -> None:
    shape = find_shape(depth=2, width=128, vocab="128k", context="8Ki").shape
    assert (shape.vocab, shape.context) == (128_000, 8192)


def test_a_changed_model_does_not_keep_its_name() -> None:
    named = find_shape("gpt2", depth=24, feed_forward="gated")
    assert named.name == "gpt2 with depth 24, ff gated"
    assert (named.shape.depth, named.shape.ff) == (24, "gated")


def test_an_unknown_family_is_read_as_a_guess_and_says_so(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    sizes = {"num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 256}
    config.write_text(json.dumps({"model_type": "newnet", "vocab_size": 99} | sizes))
    named = find_shape(config)
    assert (named.exact, named.family, named.notes[0].code) == (False, None, "unknown-family")


@pytest.mark.parametrize(
    ("model", "fields", "complaint"),
    [
        (None, {}, "give depth and width"),
        (None, {"depth": 3}, "give depth and width"),
        (42, {}, "a model is a Shape, a name of the catalogue or a path, not '42'"),
        ("lama-3-8b", {}, "did you mean 'llama-3-8b'"),
        ("gpt2", {"heads": 7}, "head"),
        ("gpt2", {"vocab": "many"}, "is not a vocabulary"),
        ("a\0b.json", {}, "cannot read|there is no config"),
        ("x" * 5000, {}, "no model"),
        ("/" + "x" * 5000, {}, "cannot read"),
    ],
)
def test_what_is_no_model_gets_a_sentence(model: Any, fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(DeepwideError, match=complaint) as error:
        find_shape(model, **fields)
    assert len(str(error.value)) < 500
    assert str(error.value).endswith((".", "?"))


def test_a_shape_may_be_changed_too() -> None:
    assert find_shape(Shape(depth=2, width=128), depth=3).shape.depth == 3
