"""Proximal steps minimise what they should, and a network trained with them has groups that are exactly zero."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deepwide.model import Architecture, Transformer, sized_groups
from deepwide.training import AutosizeConfig, RunConfig, resolve, stored_config, train, trained_model
from deepwide.training.proximal import STEPS, Autosizer, shrunk_l21, shrunk_linf1

NORMS = {"l21": 2.0, "linf1": float("inf")}
ROWS = st.lists(st.floats(-4, 4, width=32), min_size=1, max_size=5)


def objective(x: Any, w: np.ndarray, t: float, norm: float) -> float:
    return float(0.5 * ((x - w) ** 2).sum() + t * np.linalg.norm(x, norm))


@pytest.mark.parametrize("penalty", list(NORMS))
@given(w=ROWS, t=st.floats(0, 6), seed=st.integers(0, 1000))
def test_nothing_near_or_far_is_better_than_the_step(penalty: str, w: list[float], t: float, seed: int) -> None:
    row = np.array(w)
    ours = STEPS[penalty](torch.tensor([w], dtype=torch.float64), t)[0].numpy()
    best = objective(ours, row, t, NORMS[penalty])
    draw = np.random.default_rng(seed)
    others = [ours + scale * draw.normal(size=len(row)) for scale in (1e-4, 1e-2, 1.0) for _ in range(20)]
    others += [np.zeros_like(row), row, *(share * row for share in np.linspace(0, 1, 30))]
    others += [np.clip(row, -height, height) for height in np.linspace(0, 4, 60)]
    assert best <= min(objective(x, row, t, NORMS[penalty]) for x in others) + 1e-9


@pytest.mark.parametrize("penalty", list(NORMS))
def test_the_step_is_where_a_general_minimiser_ends(penalty: str) -> None:
    """Over x and a bound s on its norm: ½‖x − w‖² + t·s is smooth, and so are the constraints."""
    from scipy.optimize import minimize

    def room(y: np.ndarray) -> np.ndarray:
        x, s = y[:-1], y[-1]
        return np.append(s, s**2 - (x**2).sum()) if penalty == "l21" else np.append(s - x, s + x)

    draw = np.random.default_rng(1)
    for t in (0.1, 0.7, 1.5):
        w = draw.normal(size=4)
        ours = STEPS[penalty](torch.from_numpy(w)[None], t)[0].numpy()
        start: Any = np.append(w, np.linalg.norm(w) + 0.1)
        limits: Any = {"type": "ineq", "fun": room}

        def value(y: Any, w: Any = w, t: float = t) -> float:
            return float(0.5 * ((y[:-1] - w) ** 2).sum() + t * y[-1])

        options: Any = {"ftol": 1e-14, "maxiter": 1000}
        found: Any = minimize(value, start, method="SLSQP", constraints=limits, options=options)
        assert np.allclose(ours, found.x[:-1], atol=1e-4)


def test_rows_are_zero_exactly_from_a_known_strength_on() -> None:
    w = torch.tensor([[3.0, -4.0], [0.3, 0.4], [0.0, 0.0]], dtype=torch.float64)
    assert shrunk_l21(w, 0.5)[1:].eq(0).all()
    assert shrunk_l21(w, 0.499)[1].ne(0).all()
    assert torch.allclose(shrunk_l21(w, 0.5)[0], torch.tensor([2.7, -3.6], dtype=torch.float64))
    assert shrunk_linf1(w, 0.7)[1:].eq(0).all()
    assert shrunk_linf1(w, 0.69)[1].ne(0).all()
    assert torch.allclose(shrunk_linf1(w, 0.5)[0], torch.tensor([3.0, -3.5], dtype=torch.float64))
    assert torch.allclose(shrunk_linf1(w, 3.0)[0], torch.tensor([2.0, -2.0], dtype=torch.float64))
    for step in STEPS.values():
        assert torch.equal(step(w, 0.0), w)


def test_the_public_package_does_the_same() -> None:
    """PyPI proximal-gradient, by the authors: exact for these two."""
    theirs = pytest.importorskip("proximal_gradient.proximalGradient", reason="pip install proximal-gradient")
    w = torch.randn(7, 5, generator=torch.Generator().manual_seed(2))
    for t in (0.05, 0.8, 3.0):
        for ours, name in ((shrunk_l21, "l21"), (shrunk_linf1, "linf1")):
            parameter = torch.nn.Parameter(w.clone())
            getattr(theirs, name)(parameter, reg=t, lr=1.0)
            assert torch.allclose(ours(w, t), parameter.detach(), atol=1e-5), (name, t)


def test_only_the_parts_asked_for_are_shrunk_each_by_its_own_rate() -> None:
    model = Transformer(Architecture.of("levine", depth=1, width=8, heads=2, ff_width=6, vocab=5, context=4))
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    sizer = Autosizer(model, AutosizeConfig(strength=2.0, penalty="l21", parts=("feed_forward",)))
    sizer.apply(dict.fromkeys(before, 0.01))
    changed = {name for name, parameter in model.named_parameters() if not torch.equal(parameter, before[name])}
    assert changed == {"blocks.0.feed_forward.up.weight"}, "the biases of new neurons are 0 and stay"
    rows = torch.cat([before["blocks.0.feed_forward.up.weight"], before["blocks.0.feed_forward.up.bias"][:, None]], 1)
    assert torch.allclose(model.blocks[0].feed_forward.up.weight, shrunk_l21(rows, 0.02)[:, :-1])
    sizer = Autosizer(model, AutosizeConfig(strength=1e6, parts=("heads",)))
    sizer.apply(dict.fromkeys(before, 1.0))
    qkv = model.blocks[0].attention.qkv.weight
    assert qkv[16:].eq(0).all()
    assert torch.equal(qkv[:16], before["blocks.0.attention.qkv.weight"][:16]), "queries and keys are left alone"


def test_training_with_a_penalty_ends_with_fewer_neurons(tmp_path: object) -> None:
    run = {"task": "sorting", "depth": 1, "width": 16, "steps": 60, "lr": 1e-2, "autosize": {"strength": 12.0}}
    trained = train(run, runs=str(tmp_path), threads=1)
    alive = {groups.kind: int(groups.alive.sum()) for groups in sized_groups(trained_model(trained.path))}
    assert alive["feed_forward"] < 64
    plain = train(run | {"autosize": {}}, runs=str(tmp_path), threads=1)
    assert plain.id != trained.id
    assert all(groups.alive.all() for groups in sized_groups(trained_model(plain.path)))


def test_a_run_that_is_interrupted_is_the_run_that_was_not(tmp_path: object) -> None:
    run = {"task": "sorting", "depth": 1, "width": 16, "steps": 20, "lr": 1e-2, "autosize": {"strength": 1.0}}
    whole = train(run, runs=f"{tmp_path}/a", threads=1)
    steps = iter(range(100))
    train(run, runs=f"{tmp_path}/b", threads=1, stop=lambda: next(steps) > 15)
    again = train(run, runs=f"{tmp_path}/b", threads=1)
    assert again.validation_loss == whole.validation_loss


def test_a_run_without_it_keeps_its_config_and_id() -> None:
    run = resolve({"depth": 1, "width": 16, "steps": 5})
    assert "autosize" not in stored_config(run)
    sized = resolve({"depth": 1, "width": 16, "steps": 5, "autosize": {"strength": 0.5, "parts": ["heads"]}})
    assert stored_config(sized)["autosize"] == {"strength": 0.5, "penalty": "linf1", "parts": ["heads"]}
    assert resolve(stored_config(sized)) == sized
    assert RunConfig.of(stored_config(sized)).autosize.parts == ("heads",)
