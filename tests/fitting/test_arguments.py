"""Arguments of a wrong type get a sentence."""

from typing import Any

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.fitting import fit
from deepwide.fitting.arguments import _EXPECTED, check_arguments
from deepwide.laws import TransitionLaw
from fitting.builders import sweep

RIGHT: dict[str, tuple[Any, ...]] = {
    "kind": ("ridge",),
    "columns": ({"loss": "val_loss", "tokens": None}, {}),
    "where": ({"tokens": np.int64(5), "optimizer": "adam", "tied": True}, {}),
    "limits": ([("depth", "<=", 8), ["optimizer", "!=", "adam"]], (), iter(())),
    "embedding_rows": (0, 50304.0, np.float32(3)),
    "best_of": (["batch"], {"batch": 0}.keys(), ()),
    "counting": ("total",),
    "noise": ("depth",),
    "slope": (0.1, np.float32(0.1)),
    "pairs": (((2, 8),), [[np.int64(2), 8]]),
    "base": ("power", TransitionLaw(name="truth", a=3.2, b=0.25)),
    "embeddings": (True,),
    "drift": (False,),
    "terms": ("shape",),
    "unit": ("group",),
    "delta": (1e-3, 1),
}
WRONG = [
    3, -1.5, np.nan, "depth=3", b"x", True, object(), np.array([1, 2]), np.array(["a", "b"]), [1], ["a"],
    [("depth", "<")],
    [("depth", 3, 4)], [(1, "<", 4)], [("depth", "<", None)], {"depth": 3}, {"depth": None}, {3: "x"}, {"depth": [1]},
    ((1, 2, 3),), (2, 8), [["a"] * 99] * 99,
]  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_an_argument_of_another_type_gets_a_sentence_and_its_own_is_taken(name: str) -> None:
    for value in (*RIGHT[name], None):
        check_arguments(**{name: value})
    refused = [value for value in WRONG if not _EXPECTED[name][0](value)]
    assert len(refused) > len(WRONG) / 2
    for value in refused:
        with pytest.raises(DeepwideError, match=f"^{name} must be .*, not .*[.]$") as caught:
            check_arguments(**{name: value})
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"seed": "a"}, "the seed must be a whole number of at least 0, not 'a'."),
        (
            {"columns": {"depth": 3}},
            'columns must be a dict of our names to yours ({"loss": "val_loss"}), not {\'depth\': 3}.',
        ),
        ({"where": "depth=3"}, "where must be a dict of a column to its value ({\"tokens\": 1e11}), not 'depth=3'."),
        ({"best_of": "batch"}, "best_of must be a list of columns ([\"batch\"]), not 'batch'."),
        ({"slope": "a"}, "slope must be a number, not 'a'."),
        ({"kind": ["ridge"]}, "kind must be a word, not ['ridge']."),
    ],
)
def test_a_fit_says_which_argument_is_wrong(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DeepwideError) as caught:
        fit(sweep().rows(), **given)
    assert str(caught.value) == sentence


def test_settings_of_a_table_are_refused_for_runs_whatever_their_type() -> None:
    for table in ({"limits": np.array([1, 2])}, {"where": {"depth": 2}}, {"best_of": ["batch"]}, {"embedding_rows": 0}):
        with pytest.raises(DeepwideError):
            fit(sweep(), **table)
