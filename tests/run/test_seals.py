"""Checksums of records: whatever is changed, moved, copied or left out, the chain does not fit any more."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepwide.run.seals import Chain, link, seal, split

RUN = "0123456789abcdef"


def sealed(*steps: int, run: str = RUN) -> list[bytes]:
    lines: list[bytes] = []
    check = ""
    for step in steps:
        lines.append(seal({"step": step, "loss": 1.0 / step}, run, check))
        check = json.loads(lines[-1])["check"]
    return lines


def chain(lines: list[bytes], run: str = RUN) -> Chain:
    chained = Chain()
    for line in lines:
        chained = chained.after(run, line)
    return chained


def test_a_sealed_record_is_one_line_of_json_with_its_run_and_check() -> None:
    (line,) = sealed(7)
    assert json.loads(line) == {"loss": 1 / 7, "step": 7, "run": RUN, "check": link("", RUN, split(line)[0])}
    lines = sealed(1, 2, 3)
    assert chain(lines) == Chain(3, json.loads(lines[2])["check"], True, 3 + sum(map(len, lines)))


@given(st.data())
def test_no_changed_byte_no_lost_doubled_or_moved_line_fits(data: st.DataObject) -> None:
    lines = sealed(1, 2, 3, 4)
    i = data.draw(st.integers(0, 3))
    kind = data.draw(st.sampled_from(["byte", "lost", "doubled", "moved", "copied", "unsealed"]))
    if kind == "byte":
        at, new = data.draw(st.integers(0, len(lines[i]) - 1)), data.draw(st.integers(0, 255))
        if lines[i][at] == new:
            return
        lines[i] = lines[i][:at] + bytes([new]) + lines[i][at + 1 :]
        if i == 0 and split(lines[0])[1] is None:
            return  # a first line without a readable seal may be an old one: the second line tells
    elif kind == "lost":
        del lines[i]
        if i == 3:
            return  # the end alone: what a checkpoint or a result says about it tells
    elif kind == "doubled":
        lines.insert(i, lines[i])
    elif kind == "moved":
        lines.insert((i + 2) % 4, lines.pop(i))
    elif kind == "copied":
        lines[i] = sealed(1, 2, 3, 4, run="another")[i]
    else:
        lines[i] = split(lines[i])[0]
        if i == 0:
            assert chain(lines).sealed, (
                "as if it had been written before there were seals: the same bytes, so no damage"
            )
            return
    with pytest.raises(ValueError, match=r"lost its checksum|belongs to run|not what was written"):
        chain(lines)


def test_old_records_are_part_of_the_checks_that_follow() -> None:
    old = [b'{"step":1}', b'{"step":2}']
    check = chain(old).check
    assert not chain(old).sealed
    lines = [*old, seal({"step": 3}, RUN, check)]
    assert chain(lines).sealed
    with pytest.raises(ValueError, match="not what was written"):
        chain([b'{"step":1}', b'{"step":5}', lines[2]])
    with pytest.raises(ValueError, match="lost its checksum"):
        chain([*lines, b'{"step":4}'])


def test_the_seal_s_own_names_are_refused() -> None:
    with pytest.raises(AssertionError, match="own names"):
        seal({"step": 1, "run": "x"}, RUN)
