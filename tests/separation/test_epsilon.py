"""The numerical spectrum: right on functions whose rank is known, and moved by depth and width."""

from pathlib import Path

import numpy as np
import pytest

from deepwide.errors import DeepwideError
from deepwide.separation.epsilon import Spectrum, softmax_rank, softmax_transformer, spectrum


def test_a_sum_of_three_products_has_three_singular_values() -> None:
    def function(x: np.ndarray) -> np.ndarray:
        b, a = x[:, 0], x[:, 1]
        return a[:, 0] * b[:, 0] + a[:, 1] ** 2 * np.sin(b[:, 1]) + np.exp(a[:, 2]) * b[:, 2]

    found = spectrum(function, 3, (1, 1), points=50)
    assert found.rank(1e-10) == 3
    assert 1 < found.effective_rank < 3


def test_effective_rank_of_equal_values_is_their_number() -> None:
    assert Spectrum((5.0,) * 7).effective_rank == pytest.approx(7)
    assert Spectrum((1.0, 0.0)).effective_rank == pytest.approx(1)


def test_depth_raises_the_effective_rank_of_a_softmax_network() -> None:
    for seed in range(3):
        shallow, deep = (spectrum(softmax_transformer(n, 8, 2, seed), 8, (4, 4), 60, seed) for n in (1, 4))
        assert shallow.effective_rank < deep.effective_rank


def test_the_softmax_network_against_torch(tmp_path: Path) -> None:
    """The same pre-norm network by torch's own layers."""
    torch = pytest.importorskip("torch")
    depth, width, heads = 2, 8, 2
    draw = np.random.default_rng(3)
    names = {
        "query": (8, 8),
        "key": (8, 8),
        "value": (8, 8),
        "output": (8, 8),
        "up": (32, 8),
        "down": (8, 32),
    }
    arrays = {f"{i}.{n}": draw.normal(size=s) * 0.4 for i in range(depth) for n, s in names.items()}
    arrays["readout"] = draw.normal(size=8)
    x = draw.normal(size=(5, 6, 8))
    path = tmp_path / "w.npz"
    np.savez(path, **arrays)  # type: ignore[arg-type]
    for causal in (False, True):
        ours = softmax_transformer(depth, width, heads, causal=causal, weights=path)(x)
        t = {name: torch.tensor(array) for name, array in arrays.items()}
        z = torch.tensor(x)
        for i in range(depth):
            n = torch.nn.functional.layer_norm(z, (8,))
            qkv = (n @ t[f"{i}.{s}"].T for s in ("query", "key", "value"))
            q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in qkv)
            mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
            z = z + mixed.transpose(1, 2).flatten(2) @ t[f"{i}.output"].T
            n = torch.nn.functional.layer_norm(z, (8,))
            z = z + torch.nn.functional.gelu(n @ t[f"{i}.up"].T) @ t[f"{i}.down"].T
        theirs = torch.nn.functional.layer_norm(z, (8,))[:, -1] @ t["readout"]
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-9)


def test_weights_that_lack_an_array_get_a_sentence(tmp_path: Path) -> None:
    np.savez(tmp_path / "w.npz", **{"0.query": np.eye(4)})  # type: ignore[arg-type]
    with pytest.raises(DeepwideError, match=r"no array '0\.key'"):
        softmax_transformer(1, 4, 1, weights=tmp_path / "w.npz")


def test_outputs_that_are_not_finite_get_a_sentence() -> None:
    with pytest.raises(DeepwideError, match="not finite"):
        spectrum(lambda x: np.full(len(x), np.nan), 2, (1, 1), 5)


def test_the_softmax_rank_is_the_spectrum_s_and_marked_as_numerical() -> None:
    answer = softmax_rank(2, 4, 2, points=30, seed=3, epsilons=(1e-2, 1e-5))
    again = spectrum(softmax_transformer(2, 4, 2, 3), 4, (4, 4), 30, 3)
    assert answer.values == again.values
    assert answer.epsilon_rank == {"0.01": again.rank(1e-2), "1e-05": again.rank(1e-5)}
    assert answer.numerical
    assert answer.rows()[0] == {"depth": 2, "width": 4, "heads": 2, "index": 1, "value": 1.0}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilons": ()}, "between 0 and 1"),
        ({"epsilons": (7.0,)}, "between 0 and 1"),
        ({"points": 1}, "points must be"),
        ({"points": 10**9}, "points must be"),
        ({"weights": "identity"}, "not identity"),
        ({"depth": None}, "depth is missing"),
    ],
)
def test_what_is_no_softmax_rank_gets_a_sentence(options: dict[str, object], words: str) -> None:
    with pytest.raises(DeepwideError, match=words):
        softmax_rank(**{"depth": 1, "width": 2, **options})  # type: ignore[arg-type]
