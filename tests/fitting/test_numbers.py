"""Small numerical pieces."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.fitting.numbers import (
    as_tuples,
    check_noise,
    check_positive,
    check_resamples,
    span,
    span_known,
    t95,
)


def test_students_quantile_gives_statsmodels_intervals() -> None:
    book: dict[str, Any] = json.loads((Path(__file__).parent / "references/references.json").read_text())["ols"]
    errors = np.sqrt(np.diag(np.array(book["covariance"])))
    theta, limits = np.array(book["theta"]), np.array(book["interval95"])
    np.testing.assert_allclose(theta - t95(book["dof"]) * errors, limits[:, 0], rtol=1e-8)
    np.testing.assert_allclose(theta + t95(book["dof"]) * errors, limits[:, 1], rtol=1e-8)


def test_spans_leave_out_what_is_not_known() -> None:
    assert span(np.array([3.0, 1.0])) == (1, 3)
    assert span_known(np.array([math.nan, 2.0, 5.0])) == (2, 5)
    assert span_known(np.array([math.nan])) is None
    assert as_tuples(np.eye(2)) == ((1, 0), (0, 1))


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, [1.0, 2.0]])
def test_what_is_no_size_is_refused(value: Any) -> None:
    with pytest.raises(DeepwideError, match=r"depth"):
        check_positive(depth=value)
    check_positive(depth=3, tokens=None)


def test_words_and_numbers_of_settings_are_checked() -> None:
    with pytest.raises(DeepwideError, match="same or depth, not 'loud'"):
        check_noise("loud")
    with pytest.raises(DeepwideError, match="at least 0, not -1"):
        check_resamples(-1)
