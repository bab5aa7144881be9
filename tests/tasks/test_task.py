"""A batch is its examples however it is cut, and sums over parts are sums over the whole.

Tasks are found by name, those of other installed packages too, and nothing else is loaded.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from deepwide.errors import DeepwideError
from deepwide.tasks import Batch, answer_metrics, make_task, measure_answers
from deepwide.tasks.task import BUILT_IN


def batch_of(*, masked: bool) -> Batch:
    tokens = np.arange(12).reshape(3, 4)
    mask = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1]], dtype=bool)
    return Batch.of(tokens, tokens % 3, mask=mask if masked else None, source=tokens[:, :2])


def test_rows_cut_every_part() -> None:
    part = batch_of(masked=True).rows(1, 3)
    assert len(part) == 2
    assert part.tokens_BT[0].tolist() == [4, 5, 6, 7]
    assert part.source_BS is not None
    assert part.source_BS.tolist() == [[4, 5], [8, 9]]
    assert part.padding_BT is None
    assert part.answers == 5


def test_a_network_gets_the_parts_that_are_there() -> None:
    assert set(batch_of(masked=True).inputs) == {"mask_BT", "source_BS"}
    assert set(batch_of(masked=False).inputs) == {"source_BS"}
    assert batch_of(masked=False).answers == 12


@pytest.mark.parametrize("masked", [False, True])
def test_accuracy_counts_the_answers_that_count(masked: bool) -> None:
    batch = batch_of(masked=masked)
    answers_BT = batch.targets.clone()
    answers_BT[0, 3] = (answers_BT[0, 3] + 1) % 3  # behind the mask
    answers_BT[2, 1] = (answers_BT[2, 1] + 1) % 3
    logits_BTV = torch.nn.functional.one_hot(answers_BT, 3).float()
    whole = measure_answers(batch, 0.5, lambda: logits_BTV)
    parts = [
        measure_answers(batch.rows(i, i + 1), 0.5, lambda i=i: logits_BTV[i : i + 1])  # type: ignore[misc]
        for i in range(3)
    ]
    assert {name: sum(part[name] for part in parts) for name in whole} == whole
    metrics = answer_metrics(whole)
    assert metrics["loss"] == 0.5
    assert metrics["accuracy"] == (6 / 7 if masked else 10 / 12)
    assert metrics["whole_accuracy"] == (2 / 3 if masked else 1 / 3)


def test_a_class_is_one_answer_per_example() -> None:
    batch = Batch.of(np.zeros((4, 3)), np.array([0, 1, 1, 0]))
    logits_BC = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    assert measure_answers(batch, 2.0, lambda: logits_BC) == {
        "nats": 8.0, "answers": 4, "right": 3, "examples": 4, "whole": 3,
    }  # fmt: skip


PLUGIN = '''
from typing import ClassVar

from deepwide.tasks import Batch, Draw, Generated


class Echo(Generated):
    """Say each token again."""

    name: ClassVar[str] = "echo"
    kind: ClassVar[str] = "decoder"
    length: int = 4

    @property
    def vocab(self):
        return 8

    @property
    def context(self):
        return self.length

    def generate(self, draw: Draw) -> Batch:
        tokens = draw.below(8, self.length)
        return Batch.of(tokens, tokens)
'''
USE = """
import deepwide
from deepwide.errors import DeepwideError
from deepwide.tasks import task_names
assert "echo" in task_names(), task_names()
run = deepwide.train(
    {"model": {"depth": 1, "width": 16}, "task": {"name": "echo", "length": 6}, "steps": 60, "lr": 1e-2},
    device="cpu", threads=1,
)
assert run.status == "done" and run.metrics["accuracy"] > 0.9, run
for wrong in ({"name": "echo", "lenght": 6}, {"name": "broken"}, {"name": "os:system"}, {"name": "plugin.Echo"}):
    try:
        deepwide.train({"model": {"depth": 1, "width": 16}, "task": wrong, "steps": 1})
    except DeepwideError as error:
        print(error)
"""


def install(home: Path) -> None:
    """What pip leaves of a package: its module, and entry points in its metadata."""
    (home / "plugin.py").write_text(PLUGIN)
    metadata = home / "plugin-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[deepwide.tasks]\necho = plugin:Echo\nbroken = not_there:Task\nsorting = plugin:Echo\n"
    )


def test_an_installed_package_adds_a_task_from_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "site").mkdir()
    install(tmp_path / "site")
    monkeypatch.chdir(tmp_path)
    code = f"import sys; sys.path.append({str(tmp_path / 'site')!r})\n{USE}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == [
        "there is no setting 'task.lenght': did you mean 'length'?",
        "task 'broken' of not_there:Task cannot be loaded: ModuleNotFoundError: No module named 'not_there'.",
        *(line for line in done.stdout.splitlines() if line.startswith("there is no task")),
    ]
    assert done.stdout.count("there is no task") == 2


def test_what_is_built_in_needs_no_entry_points_and_cannot_be_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepwide.tasks.task.entry_points", lambda **_: pytest.fail("looked outside"))
    for name in BUILT_IN:
        assert make_task(name, {}).name == name


@pytest.mark.parametrize(
    ("name", "parameters", "sentence"),
    [
        ("sortin", {}, "there is no task 'sortin': did you mean 'sorting'?"),
        ("sorting", {"lenght": 3}, "there is no setting 'task.lenght': did you mean 'length'?"),
        ("sorting", {"length": "long"}, "task.length: input should be a valid integer, not 'long'."),
        ("matching", {"focus": 2.0}, "task.focus: input should be less than or equal to 1, not '2.0'."),
        ("x" * 500, {}, "there is no task"),
    ],
)
def test_a_mistake_costs_a_sentence(name: str, parameters: dict[str, object], sentence: str) -> None:
    with pytest.raises(DeepwideError) as error:
        make_task(name, parameters)
    assert str(error.value).startswith(sentence)
    assert len(str(error.value)) < 400
    assert str(error.value).endswith((".", "?"))


def test_every_kind_and_head_has_a_task() -> None:
    tasks = [make_task(name, {}) for name in BUILT_IN]
    assert {task.kind for task in tasks} == {"decoder", "encoder", "encoder-decoder"}
    assert {task.head for task in tasks} == {"tokens", "class", "pair"}
