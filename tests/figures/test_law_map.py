"""The fitted law on the map."""

import math

from deepwide.figures import fitted_map
from figures.fits import data, large, transition


def test_the_best_of_its_size_is_best_of_all_within_a_factor_of_root_two() -> None:
    rows = data(fitted_map(large()), "blocks")
    trained = [row for row in rows if row["kind"] != "public"]
    best = [row for row in trained if row["kind"].startswith("best")]
    size = {row["shape"]: 12 * row["depth"] * row["width"] ** 2 for row in rows}
    assert 3 <= len(best) <= 6
    for one in best:
        near = [row for row in trained if abs(math.log(size[row["shape"]] / size[one["shape"]])) < 0.346]
        assert len(near) > 1
        assert float(one["detail"]) <= min(float(row["detail"]) for row in near)


def test_public_models_are_of_the_runs_sizes_and_do_not_stretch_the_map() -> None:
    for fit in (large(), transition()):
        rows = data(fitted_map(fit), "blocks")
        public, trained = (
            [row for row in rows if (row["kind"] == "public") == is_public] for is_public in (True, False)
        )
        assert len(public) <= 6
        for row in public:
            assert fit.params_range[0] / 2 < 12 * row["depth"] * row["width"] ** 2 < 2 * fit.params_range[1]
            assert row["width"] < 1.5 * max(other["width"] for other in trained)
    assert len([row for row in data(fitted_map(large()), "blocks") if row["kind"] == "public"]) >= 3


def test_runs_of_different_lengths_are_not_compared() -> None:
    longer = [r._replace(tokens=1e9 * (1 + i % 2)) for i, r in enumerate(large().residuals)]
    rows = data(fitted_map(large().model_copy(update={"residuals": tuple(longer)})), "blocks")
    assert {row["kind"] for row in rows} == {"run", "public"}
