"""Records that are state: a torn tail heals, anything else unreadable stops with the path and the remedy."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepwide import files
from deepwide.run import RunFolder, UnreadableRun, has_result
from deepwide.run.records import canonical, parse, read_record
from deepwide.run.toy import NUMERICS, ToyConfig
from deepwide.sweeping.worker import Exit, work

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def toy(runs: Path, **changes: object) -> RunFolder:
    config = ToyConfig(**{"steps": 6, "checkpoint_every": 2, **changes}).model_dump(mode="json")
    return RunFolder.create(runs, config, data_fingerprint="d", numerics=NUMERICS)


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_a_record_comes_back_as_it_was_on_one_line(record: dict[str, object]) -> None:
    try:
        line = canonical(record)
    except UnicodeEncodeError:
        return
    assert "\n" not in line
    assert json.loads(line) == record
    assert canonical(json.loads(line)) == line


def test_equal_records_are_equal_bytes_whatever_the_order_of_their_keys() -> None:
    assert canonical({"b": 1, "a": {"d": 1, "c": 2}}) == canonical({"a": {"c": 2, "d": 1}, "b": 1})


def test_what_is_not_a_number_is_written_as_null() -> None:
    assert canonical({"loss": float("inf"), "more": [float("nan")]}) == '{"loss":null,"more":[null]}'


def test_a_last_line_cut_at_any_byte_heals_and_the_run_ends_the_same(memory: Path) -> None:
    whole = toy(memory / "whole")
    assert work([whole.path], owner="one") == Exit.FINISHED
    expected = (whole.path / "metrics.jsonl").read_bytes()
    lines = expected.splitlines(keepends=True)
    before, last = b"".join(lines[:-1]), lines[-1]
    cut = toy(memory / "cut")
    assert work([cut.path], owner="one") == Exit.FINISHED
    for size in range(len(last) + 1):
        (cut.path / "result.json").unlink(missing_ok=True)
        (cut.path / "metrics.jsonl").write_bytes(before + last[:size])
        assert len(cut.metrics()) == (6 if size == len(last) else 5), "a reader never sees half a record"
        with cut.lease("healer"):
            healed = (cut.path / "metrics.jsonl").read_bytes()
        assert healed == (expected if size == len(last) else before)


def test_every_cut_of_the_whole_file_resumes_to_the_same_bytes(memory: Path) -> None:
    """Also cuts that lose whole records: a run without a checkpoint writes them again."""
    whole = toy(memory / "whole", steps=4, checkpoint_every=4)
    assert work([whole.path], owner="one") == Exit.FINISHED
    expected = (whole.path / "metrics.jsonl").read_bytes()
    for size in range(0, len(expected), 7):
        cut = toy(memory / f"cut-{size}", steps=4, checkpoint_every=4)
        (cut.path / "metrics.jsonl").write_bytes(expected[:size])
        assert work([cut.path], owner="one") == Exit.FINISHED
        assert (cut.path / "metrics.jsonl").read_bytes() == expected


@pytest.mark.parametrize(
    "bad", [b"{", b"", b"[1]", b'{"step":"1"}', b'{"loss":1}', b'{"step":NaN}', b"\xff\xfe", b"\x80\x04K\x01."]
)
def test_an_unreadable_line_in_the_middle_stops_with_path_line_and_remedy(tmp_path: Path, bad: bytes) -> None:
    folder = toy(tmp_path)
    content = b'{"step":1}\n' + bad + b'\n{"step":3}\n'
    (folder.path / "metrics.jsonl").write_bytes(content)
    with pytest.raises(UnreadableRun, match=r"metrics\.jsonl is unreadable \(line 2.*cut it before line 2"):
        folder.metrics()
    assert work([folder.path], owner="one") == Exit.UNREADABLE
    assert (folder.path / "metrics.jsonl").read_bytes() == content, "nothing was changed"
    assert folder.result() is None


@pytest.mark.parametrize("name", ["config.json", "lease.json", "result.json"])
@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\x00" * 64, b'{"status":3}', b"\x80\x04K\x01.", b"[" * 100_000]
)
def test_unreadable_state_stops_and_nothing_starts_over(memory: Path, name: str, content: bytes) -> None:
    folder = toy(memory)
    (folder.path / name).write_bytes(content)
    before = {path.name: path.read_bytes() for path in folder.path.iterdir()}
    assert work([folder.path], owner="one") == Exit.UNREADABLE
    after = {path.name: path.read_bytes() for path in folder.path.iterdir() if path.name != ".lock"}
    assert after == before
    with pytest.raises(UnreadableRun, match=f"{name} is unreadable.*: (put it back|delete this file)"):
        read_all(folder.path)


def read_all(path: Path) -> None:
    folder = RunFolder.open(path)
    folder.result()
    folder.lease_record()


@pytest.mark.parametrize("name", ["config.json", "lease.json", "result.json", "metrics.jsonl", "checkpoints"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_regular_file_is_refused_and_never_waited_for(memory: Path, name: str, kind: str) -> None:
    folder = toy(memory)
    path = folder.path / name
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif name == "checkpoints":
        path.write_text("")
    else:
        path.mkdir()
    assert work([folder.path], owner="one") == Exit.UNREADABLE
    assert not has_result(folder.path) or name == "result.json"


def test_a_lock_that_is_a_link_is_not_followed(memory: Path, tmp_path: Path) -> None:
    folder = toy(memory)
    (folder.path / ".lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnreadableRun, match="delete it"), folder.lease("one"):
        pass
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_json_number_is_refused_wherever_it_stands(number: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableRun, match="not JSON"):
        parse(f'{{"a": [{number}]}}'.encode(), tmp_path / "x.json", "delete it")


def test_a_file_larger_than_any_of_ours_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "result.json"
    with open(path, "wb") as file:
        file.truncate(files.LARGEST_JSON + 1)  # sparse: it takes no room
    with pytest.raises(UnreadableRun, match="larger than 64 MiB"):
        read_record(path, "delete it")
    monkeypatch.setattr(files, "LARGEST_JSON", 5)
    path.write_text('{"a":1}')
    with pytest.raises(UnreadableRun, match="larger than"):
        read_record(path, "delete it")
