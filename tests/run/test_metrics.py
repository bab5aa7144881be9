"""Metrics and results as they are read: copied, edited or stale files are named, old ones load unchecked."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from deepwide.run import FINISHED, RunFolder, UnreadableRun, canonical, has_result, metrics, read_run
from deepwide.run.metrics import PIECES, read_checked_result, read_last, read_metrics, read_result, sample, whole
from deepwide.run.records import parse_line
from deepwide.run.seals import Chain, seal


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


@pytest.mark.parametrize("record", ['{"step":1,"loss":1e999}', '{"step":1,"more":[{"a":-1e999}]}'])
def test_a_number_that_no_float_holds_is_no_record(tmp_path: Path, record: str) -> None:
    (tmp_path / "metrics.jsonl").write_text(record + "\n")
    with pytest.raises(UnreadableRun, match="line 1: it holds a number that is not finite"):
        read_metrics(tmp_path)


@pytest.mark.parametrize("step", ["true", "1.5", '"1"', "null"])
def test_a_record_has_an_integer_step(tmp_path: Path, step: str) -> None:
    (tmp_path / "metrics.jsonl").write_text(f'{{"step":{step}}}\n')
    with pytest.raises(UnreadableRun, match="line 1: it has no step"):
        read_metrics(tmp_path)


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


def long(folder: Path, sealed_from: int = 1, records: int = 3000) -> list[bytes]:
    """Metrics of very many records, those before `sealed_from` as they were written before there were seals."""
    chain, written = Chain(), []
    for step in range(1, records + 1):
        record = {"step": step, "loss": 1 / step}
        line = seal(record, folder.name, chain.check) if step >= sealed_from else canonical(record).encode()
        chain = chain.after(folder.name, line)
        written.append(line + b"\n")
    (folder / "metrics.jsonl").write_bytes(b"".join(written))
    return written


@pytest.mark.parametrize("sealed_from", [1, 1500, 5000])
def test_a_very_long_file_is_shown_by_pieces_from_its_first_record_to_its_last(
    tmp_path: Path, sealed_from: int
) -> None:
    written = long(tmp_path, sealed_from)
    assert sample(tmp_path) == read_metrics(tmp_path), "as long as it is not long"
    most = 220 * PIECES
    assert sum(map(len, written)) > 2 * most
    shown = sample(tmp_path, most)
    steps = [record["step"] for record in shown]
    assert steps == sorted(set(steps))
    assert (steps[0], steps[-1]) == (1, 3000)
    assert PIECES < len(steps) < 2000
    assert all(record == {"step": record["step"], "loss": 1 / record["step"]} for record in shown)
    with open(tmp_path / "metrics.jsonl", "ab") as file:
        file.write(written[-1][:20])
    assert sample(tmp_path, most)[-1]["step"] >= 2990, "a torn last line is none"


def test_a_record_that_was_changed_is_not_shown(tmp_path: Path) -> None:
    written = long(tmp_path)
    steps = [record["step"] for record in sample(tmp_path, 300 * PIECES)]
    followers = [step for step in steps if step - 1 in steps and step > 100]
    written[followers[0] - 1] = written[followers[0] - 1].replace(b'"loss":0', b'"loss":1')
    (tmp_path / "metrics.jsonl").write_bytes(b"".join(written))
    with pytest.raises(UnreadableRun, match="a line in the middle: it is not what was written"):
        sample(tmp_path, 300 * PIECES)


def test_a_sample_reads_no_more_than_its_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    longest = max(map(len, long(tmp_path, records=20_000)))
    parsed = 0
    whole_line = parse_line

    def counted(line: bytes) -> dict[str, object] | str:
        nonlocal parsed
        parsed += len(line)
        return whole_line(line)

    monkeypatch.setattr(metrics, "parse_line", counted)
    sample(tmp_path, 300 * PIECES)
    assert parsed <= (300 + longest) * PIECES
    assert sample(tmp_path / "none") == []
