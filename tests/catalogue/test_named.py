"""From what a user names to a shape: what is a path is a path, and a name is the catalogue's or nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

import deepwide
from deepwide.catalogue import find_model, find_shape
from deepwide.errors import DeepwideError
from deepwide.shape import Shape, write_config


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
