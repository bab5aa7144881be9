"""Count: the numbers of the shape's own functions, put together, from whatever names the model."""

from pathlib import Path
from typing import Any

import pytest

import deepwide
from deepwide.catalogue import find_model
from deepwide.errors import DeepwideError
from deepwide.planning import Count, count
from deepwide.shape import flops, inference_memory, training_memory, write_config


def test_a_name_a_shape_and_a_path_count_the_same(tmp_path: Path) -> None:
    shape = find_model("llama-3-8b").shape
    write_config(shape, "llama", tmp_path)
    for model in ("llama-3-8b", shape, tmp_path, str(tmp_path / "config.json")):
        counted = deepwide.count(model)
        assert isinstance(counted, Count)
        assert counted.params.total == 8_030_261_248
        assert counted.exact


def test_options_reach_what_they_name() -> None:
    shape = find_model("gpt2").shape
    counted = count(
        "gpt2", sequence=128, batch=4, training_precision="fp32", inference_precision="int8", attention="eager",
        recompute=True,
    )  # fmt: skip
    assert counted.flops == flops(shape, 128, "recompute")
    assert counted.training_memory == training_memory(
        shape, batch=4, sequence=128, precision="fp32", attention="eager", recompute=True
    )
    assert counted.inference_memory == inference_memory(shape, batch=4, sequence=128, precision="int8")
    assert count("gpt2", recompute=True, convention="causal").flops.convention == "causal"


def test_rows_have_every_part_once_and_sum_to_the_totals() -> None:
    rows = count("gpt2").rows()
    amounts = {(row["what"], row["part"]): row["amount"] for row in rows}
    assert len(amounts) == len(rows)
    parts = ("embedding", "positions", "attention", "feed_forward", "norms", "head")
    assert sum(amounts["parameters", part] for part in parts) == amounts["parameters", "total"] == 124_439_808
    assert {row["unit"] for row in rows} == {"parameters", "FLOPs", "bytes"}
    assert count("gpt2").to_polars().height == len(rows)


def test_it_is_a_json_document() -> None:
    document = count("gpt2").model_dump(mode="json")
    assert document["params"]["total"] == 124_439_808
    assert set(document) == {
        "name", "shape", "family", "exact", "params", "flops", "training_memory", "inference_memory", "notes",
        "device",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"convention": "foo"}, "no FLOP convention 'foo'"),
        ({"batch": 0}, "batch must be at least 1"),
        ({"attention": "fast"}, "no attention 'fast'"),
        ({"depth": 0}, "depth"),
        ({"dpth": 3}, "there is no field 'dpth': did you mean 'depth'"),
    ],
)
def test_what_cannot_be_counted_gets_a_sentence(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(DeepwideError, match=complaint):
        count("gpt2", **fields)


def test_a_batch_or_a_sequence_that_is_no_number_gets_a_sentence() -> None:
    for words, fields in (("batch must be a whole number, not 'a'.", {"batch": "a"}), ("sequence", {"sequence": 1.5})):
        with pytest.raises(DeepwideError, match=words):
            count("gpt2", **fields)
    assert count("gpt2", sequence="8Ki").flops.sequence == 8192


def test_a_model_that_is_split_also_has_the_memory_of_its_fullest_device() -> None:
    assert count("gpt2").device is None
    split = count("gpt2", tensor_parallel=4, pipeline_stages=2, data_parallel=8, zero=3)
    assert split.device is not None
    assert 0 < split.device.training < split.training_memory.total / 4
    assert any(row["what"] == "memory of the fullest device" for row in split.rows())
