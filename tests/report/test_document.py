"""A report's parts before any format."""

import csv
import gzip
import io

import pytest

from deepwide.report import Attachment, Figure, Notes, Table
from deepwide.report.document import LONGEST_LINK, MOST_ROWS, draw, versions_now
from report.parts import unpacked

SVG = "<svg><text aria-label=\"Title text 'Loss &amp; size'\"/><g aria-label=\"Subtitle text 'points: runs'\"/></svg>"


def test_the_csv_has_every_row_and_column_with_all_digits() -> None:
    rows = [{"a": i / 3, "hidden": i} for i in range(MOST_ROWS + 5)] + [{"a": None, "late": "x,\ny"}]
    table = Table.of("t", rows, "", {"a": "A", "absent": "B"})
    assert dict(table.columns) == {"a": "A"}
    assert len(table.shown()) == MOST_ROWS
    assert table.left_out == f"6 more of {MOST_ROWS + 6} rows are in the CSV."
    again = list(csv.DictReader(io.StringIO(table.csv.content.decode())))
    assert [float(row["a"]) for row in again[:-1]] == [row["a"] for row in rows[:-1]]
    assert again[-1]["late"] == "x,\ny"


def test_columns_without_a_value_are_not_shown_and_flags_are_no_numbers() -> None:
    table = Table.of("t", [{"a": 1, "b": None, "c": False, "d": ""}, {"a": None, "c": True}])
    assert list(table.columns) == ["a", "c"]
    assert table.numeric() == [True, False]
    assert table.shown() == [["1", "no"], ["", "yes"]]


def test_a_long_file_travels_packed() -> None:
    small, large = Attachment("a.csv", b"x" * 100), Attachment("a.csv", b"x,y\n" * LONGEST_LINK)
    assert small.link[0] == "a.csv"
    name, address = large.link
    assert name == "a.csv.gz"
    assert len(address) < LONGEST_LINK
    assert unpacked(name, address) == large.content
    assert gzip.compress(large.content, mtime=0) == gzip.compress(large.content, mtime=0)  # the same bytes every day


def test_a_figure_is_described_by_its_title() -> None:
    assert Figure.from_svg("loss", SVG, "caption").alt == "Loss & size. points: runs"
    assert Figure.from_svg("loss", "<svg/>", "caption").alt == "caption"


@pytest.mark.parametrize("module", ["altair", "vl_convert"])
def test_without_a_plotting_library_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setitem(__import__("sys").modules, module, None)
    block = draw("map", pytest.fail, "The map")
    assert isinstance(block, Notes)
    assert f"needs {module}" in block.texts[0]
    assert "The map" in block.texts[0]


def test_versions_are_those_of_now() -> None:
    import numpy

    assert versions_now()["numpy"] == numpy.__version__
