"""Metrics and results as they are read: copied, edited or stale files are named, old ones load unchecked."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from deepwide.run import FINISHED, RunFolder, UnreadableRun, has_result, read_run
from deepwide.run.metrics import read_checked_result, read_last, read_metrics, read_result, whole


def finished(runs: Path, lr: float = 0.1, records: int = 3) -> RunFolder:
    folder = RunFolder.create(runs, {"lr": lr}, data_fingerprint="d", numerics="1")
    with folder.lease("me") as writer:
        for step in range(1, records + 1):
            writer.append({"step": step, "loss": lr / step})
        writer.finish("done", loss=lr)
    return folder


def unsealed(folder: RunFolder) -> RunFolder:
    """As if it had been written before there were seals."""
    records, result = folder.metrics(), folder.result()
    (folder.path / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (folder.path / "result.json").write_text(json.dumps(result) + "\n")
    return folder


def test_records_and_result_come_back_without_their_seals(memory: Path) -> None:
    folder = finished(memory)
    assert folder.metrics() == [{"step": step, "loss": 0.1 / step} for step in (1, 2, 3)]
    assert folder.last_record() == {"step": 3, "loss": 0.1 / 3}
    assert read_checked_result(folder.path) == ({"status": "done", "loss": 0.1}, True)
    for line in (folder.path / "metrics.jsonl").read_text().splitlines():
        assert json.loads(line)["run"] == folder.id
    written = json.loads((folder.path / "result.json").read_text())
    assert (written["run"], written["records"]) == (folder.id, 3)


def test_old_folders_load_and_are_unchecked(memory: Path) -> None:
    folder = unsealed(finished(memory))
    assert len(folder.metrics()) == 3
    assert read_checked_result(folder.path) == ({"status": "done", "loss": 0.1}, False)
    assert not read_run(folder.path).checked
    (folder.path / "result.json").unlink()
    with folder.lease("me") as writer:
        writer.append({"step": 4, "loss": 0.0})
        writer.finish("done", loss=0.5)
    assert len(folder.metrics()) == 4
    assert read_checked_result(folder.path) == ({"status": "done", "loss": 0.5}, True)


def test_an_old_run_finished_by_a_new_version_without_more_records_is_whole(memory: Path) -> None:
    folder = unsealed(finished(memory))
    (folder.path / "result.json").unlink()
    with folder.lease("me") as writer:
        writer.finish("failed", error="why")
    assert folder.result() == {"status": "failed", "error": "why"}


def _copy(name: str) -> Callable[[RunFolder, RunFolder], object]:
    return lambda a, b: (a.path / name).write_bytes((b.path / name).read_bytes())


def _edit(name: str, old: str, new: str) -> Callable[[RunFolder, RunFolder], object]:
    return lambda a, _: (a.path / name).write_text((a.path / name).read_text().replace(old, new))


def _lines(change: Callable[[list[str]], list[str]]) -> Callable[[RunFolder, RunFolder], object]:
    def write(a: RunFolder, _: RunFolder) -> None:
        path = a.path / "metrics.jsonl"
        path.write_text("".join(change(path.read_text().splitlines(keepends=True))))

    return write


DAMAGES: dict[str, tuple[Callable[[RunFolder, RunFolder], object], str]] = {
    "a result copied from another run": (_copy("result.json"), "belongs to run"),
    "metrics copied from another run": (_copy("metrics.jsonl"), "belongs to run|does not end"),
    "a digit of the result": (_edit("result.json", '"loss":0.1', '"loss":0.2'), "not what was written"),
    "a digit of the first record": (_edit("metrics.jsonl", '"loss":0.1', '"loss":0.2'), "line 1.*not what was written"),
    "a line dropped": (_lines(lambda lines: lines[1:]), "line 1.*missing"),
    "a line dropped from the end": (_lines(lambda lines: lines[:-1]), "does not end"),
    "a line doubled": (_lines(lambda lines: [lines[0], *lines]), "line 2.*doubled"),
    "lines swapped": (_lines(lambda lines: [lines[1], lines[0], lines[2]]), "line 1.*order"),
    "metrics emptied": (_lines(lambda _: []), "does not end"),
    "metrics deleted": (lambda a, _: (a.path / "metrics.jsonl").unlink(), "does not end"),
    "the result's seal removed": (
        lambda a, _: (a.path / "result.json").write_text('{"status":"done","loss":0.1}'), "lost its checksum"
    ),
    "infinity": (lambda a, _: (a.path / "result.json").write_text('{"status":"done","loss":1e999}'), "not finite"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_copied_edited_and_stale_files_are_named(memory: Path, damage: str) -> None:
    folder, other = finished(memory, 0.1), finished(memory, 0.3)
    change, words = DAMAGES[damage]
    change(folder, other)
    with pytest.raises(UnreadableRun, match=words) as caught:
        (folder.result(), folder.metrics())
    assert folder.id in str(caught.value), "it is named"
    assert "put" in str(caught.value), "and there is a remedy"


def test_a_stale_result_does_not_fit_the_metrics_beside_it(memory: Path) -> None:
    folder = finished(memory)
    stale = (folder.path / "result.json").read_bytes()
    folder.reopen()
    with folder.lease("me") as writer:
        writer.append({"step": 4, "loss": 0.0})
        writer.finish("done", loss=0.0)
    (folder.path / "result.json").write_bytes(stale)
    with pytest.raises(UnreadableRun, match="does not end with the record"):
        folder.result()


def test_zeros_that_never_became_data_are_a_torn_tail(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(b'{"step":1}\n' + bytes(500))
    assert read_metrics(tmp_path) == [{"step": 1}]
    assert whole(tmp_path).size == 11
    assert read_last(tmp_path) == ({"step": 1}, None)


def test_a_line_that_never_ends_is_refused_in_bounded_memory(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(b'{"step":1,"a":"' + b"x" * (3 << 20) + b'"}\n')
    with pytest.raises(UnreadableRun, match="line 1: longer than 1 MiB"):
        read_metrics(tmp_path)


@pytest.mark.parametrize("status", FINISHED)
def test_a_run_with_a_result_has_finished(tmp_path: Path, status: str) -> None:
    assert not has_result(tmp_path)
    assert read_result(tmp_path) is None
    (tmp_path / "result.json").write_text(json.dumps({"status": status}))
    assert has_result(tmp_path)
    assert read_result(tmp_path) == {"status": status}


@pytest.mark.parametrize("status", ["over", "", None, 3, ["done"]])
def test_a_status_that_nobody_knows_is_unreadable(tmp_path: Path, status: object) -> None:
    (tmp_path / "result.json").write_text(json.dumps({"status": status}))
    with pytest.raises(UnreadableRun, match=r"result\.json is unreadable"):
        read_result(tmp_path)
