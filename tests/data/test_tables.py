"""Rows come out of every kind of file as they went in; what is no table is refused in a sentence."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepwide.data import DataConfig, Table, corpus, fingerprint, prepare, tables
from deepwide.data.tables import label_names, rows, table_files
from deepwide.errors import DeepwideError

PAIRS = [("a cat", "eine Katze"), ("two dogs", "zwei Hunde"), ("fish", "Fisch"), ("ü", "ß")]
TABLE = Table(columns=("source", "target"), usual=("source", "target"))
LABELLED = Table(columns=("text", "label"), usual=("text", "label"), labelled=True)


def text_of(table: Sequence[tuple[str, ...]]) -> str:
    return "".join("\t".join(row) + "\n" for row in table)


def read(source: Path | str, table: Table = TABLE) -> list[tuple[str, ...]]:
    return [tuple(cell.decode() for cell in row) for row in rows(str(source), table)]


def test_every_kind_of_file_gives_the_same_rows(tmp_path: Path) -> None:
    (tmp_path / "plain.tsv").write_text(text_of(PAIRS))
    (tmp_path / "named.tsv").write_text("id\ttarget\tsource\n" + "".join(f"1\t{t}\t{s}\n" for s, t in PAIRS))
    (tmp_path / "windows.tsv").write_bytes(b"\xef\xbb\xbf" + text_of(PAIRS).replace("\n", "\r\n").encode())
    objects = "".join(json.dumps({"target": t, "source": s, "n": 1}) + "\n" for s, t in PAIRS)
    (tmp_path / "rows.jsonl").write_text(objects)
    (tmp_path / "packed.jsonl.gz").write_bytes(gzip.compress(objects.encode()))
    (tmp_path / "packed.tsv.gz").write_bytes(gzip.compress(text_of(PAIRS).encode()))
    for name in ("plain.tsv", "named.tsv", "windows.tsv", "rows.jsonl", "packed.jsonl.gz", "packed.tsv.gz"):
        assert read(tmp_path / name) == PAIRS, name
    numbered = TABLE.model_copy(update={"columns": ("3", "2")})
    assert read(tmp_path / "named.tsv", numbered)[1:] == PAIRS, "by number, the line of names is a row"


def test_aligned_files_are_read_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "x.en").write_text("".join(s + "\n" for s, _ in PAIRS))
    (tmp_path / "x.de.gz").write_bytes(gzip.compress("".join(t + "\n" for _, t in PAIRS).encode()))
    assert read(f"{tmp_path / 'x.en'},{tmp_path / 'x.de.gz'}") == PAIRS
    by_folder = TABLE.model_copy(update={"languages": "en-de"})
    assert read(tmp_path, by_folder) == PAIRS
    assert read(tmp_path, TABLE.model_copy(update={"languages": "de-en"})) == [(t, s) for s, t in PAIRS]
    (tmp_path / "y.en").write_text("more\n")
    with pytest.raises(DeepwideError, match=r"y\.en has no counterpart that ends in \.de"):
        read(tmp_path, by_folder)
    (tmp_path / "y.de").write_text("mehr\nund mehr\n")
    with pytest.raises(DeepwideError, match=r"y\.en has 1 lines and .*y\.de has more"):
        read(tmp_path, by_folder)


def test_a_folder_is_its_tables_in_order_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "b.tsv").write_text(text_of(PAIRS[2:]))
    (tmp_path / "a.tsv").write_text(text_of(PAIRS[:2]))
    (tmp_path / "README").write_text("no table\n")
    (tmp_path / ".hidden.tsv").write_text("x\ty\n")
    assert read(tmp_path) == PAIRS
    assert [path.name for (path,) in table_files(str(tmp_path), TABLE)] == ["a.tsv", "b.tsv"]


def test_rows_with_a_blank_side_and_blank_lines_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("a\tb\n\n \tc\nd\t \ne\tf\tg\n")
    assert read(tmp_path / "x.tsv") == [("a", "b"), ("e", "f")]


@given(st.lists(st.tuples(*[st.text(st.characters(codec="utf-8"), max_size=8)] * 2), max_size=8))
def test_any_rows_survive_json(table: list[tuple[str, str]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        path.write_text("".join(json.dumps({"source": s, "target": t}) + "\n" for s, t in table))
        blank = [(s, t) for s, t in table if s.encode().strip() and t.encode().strip()]
        assert read(path) == blank


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("x.tsv", b"only one column\n", "line 1 of .* has 1 column and needs 2: columns are separated by tabs"),
        ("x.tsv", b"a\tb\nc\n", "line 2 of .* has 1 column"),
        ("x.jsonl", b"{\n", "line 1 of .* is not JSON"),
        ("x.jsonl", b"[1, 2]\n", "is not an object with named columns"),
        ("x.jsonl", b'{"source": "a", "Target": "b"}\n', "no text in column 'target'; its columns are Target, source"),
        ("x.jsonl", b'{"source": "a", "target": null}\n', "no text in column 'target'"),
        ("x.tsv.gz", b"not gzipped", "is damaged"),
    ],
)
def test_what_is_no_table_costs_a_sentence(name: str, content: bytes, sentence: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DeepwideError, match=sentence) as error:
        read(tmp_path / name)
    assert "\n" not in str(error.value)
    assert str(error.value).endswith(".")


def test_sources_that_are_not_there_cost_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "there.en").write_text("a\n")
    for source, sentence in (
        ("nowhere.tsv", "there is no file 'nowhere.tsv': give a .tsv or .jsonl file, two aligned files as one,two,"),
        (f"{tmp_path / 'there.en'},nowhere.de", "there is no file 'nowhere.de'"),
        (str(tmp_path), "holds no .tsv or .jsonl file; for aligned files give their languages"),
    ):
        with pytest.raises(DeepwideError, match=sentence):
            read(source)
    for languages in ("en", "en-", "en-en", "a-b-c"):
        with pytest.raises(DeepwideError, match="two endings of files with a dash between"):
            read(tmp_path, TABLE.model_copy(update={"languages": languages}))
    with pytest.raises(DeepwideError, match=r"holds no files that end in .x and .y"):
        read(tmp_path, TABLE.model_copy(update={"languages": "x-y"}))
    (tmp_path / "t.tsv").write_text("text\tclass\nfine\t1\n")
    with pytest.raises(DeepwideError, match="does not name the columns 'text' and 'grade'; it has 'text, class'"):
        read(tmp_path / "t.tsv", LABELLED.model_copy(update={"columns": ("text", "grade")}))
    with pytest.raises(DeepwideError, match="texts and labels are in one table"):
        read(f"{tmp_path / 'there.en'},{tmp_path / 't.tsv'}", LABELLED)


def test_a_line_without_end_is_refused_and_not_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "LONGEST_ROW", 100)
    monkeypatch.setattr("deepwide.data.sources.LONGEST_ROW", 100)
    (tmp_path / "x.tsv").write_text("a" * 200 + "\tb\n")
    with pytest.raises(DeepwideError, match=r"line 1 of .* is longer than"):
        read(tmp_path / "x.tsv")


def test_labels_are_the_different_ones_of_both_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.tsv").write_text("fine\tgood \nawful\tbad\nfine too\tgood\n")
    (tmp_path / "dev.jsonl").write_text('{"text": "so so", "label": 3}\n')
    assert label_names(str(tmp_path / "x.tsv"), LABELLED) == ("bad", "good")
    both = LABELLED.model_copy(update={"held_out": str(tmp_path / "dev.jsonl")})
    assert label_names(str(tmp_path / "x.tsv"), both) == ("3", "bad", "good")
    (tmp_path / "one.tsv").write_text("fine\tgood\n")
    with pytest.raises(DeepwideError, match="has 1 label, and classes are at least two"):
        label_names(str(tmp_path / "one.tsv"), LABELLED)
    (tmp_path / "swapped.tsv").write_text("good\t" + "long " * 50 + "\nbad\ttext\n")
    with pytest.raises(DeepwideError, match=r"does not hold labels: one has more than 200 letters \(settings"):
        label_names(str(tmp_path / "swapped.tsv"), LABELLED)
    monkeypatch.setattr(tables, "MOST_LABELS", 1)
    with pytest.raises(DeepwideError, match="more than 1 different ones"):
        label_names(str(tmp_path / "x.tsv"), LABELLED)


def many(path: Path, start: int = 0) -> Path:
    path.write_text("".join(f"sentence {i % 40} here\tSatz {i} hier\n" for i in range(start, start + 80)))
    return path


def test_a_sentence_that_comes_twice_is_in_one_part_only(tmp_path: Path) -> None:
    data = DataConfig(source=str(many(tmp_path / "x.tsv")), validation=0.3)
    stored = prepare(data, table=TABLE)
    parts = [set(bytes(part.astype("u1")).split(b"\0")[0:-1:2]) for part in (stored.train, stored.validation)]
    assert len(parts[0]) + len(parts[1]) == 40
    assert not parts[0] & parts[1]
    assert min(map(len, parts)) > 3


def test_held_out_rows_are_the_validation_set(tmp_path: Path) -> None:
    data = DataConfig(source=str(many(tmp_path / "x.tsv")))
    held_out = TABLE.model_copy(update={"held_out": str(many(tmp_path / "dev.tsv", 1000))})
    stored = prepare(data, table=held_out)
    assert bytes(stored.train.astype("u1")).count(b"\0") == 160
    assert b"Satz 1079 hier" in bytes(stored.validation.astype("u1"))
    assert fingerprint(data, held_out) != fingerprint(data, TABLE)
    many(tmp_path / "dev.tsv", 2000)
    assert prepare(data, table=held_out).fingerprint != stored.fingerprint


def test_the_same_rows_are_the_same_corpus_in_whatever_file(tmp_path: Path) -> None:
    many(tmp_path / "x.tsv")
    lines = [line.split("\t") for line in (tmp_path / "x.tsv").read_text().splitlines()]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps({"source": s, "target": t}) + "\n" for s, t in lines))
    (tmp_path / "x.en").write_text("".join(s + "\n" for s, _ in lines))
    (tmp_path / "x.de").write_text("".join(t + "\n" for _, t in lines))
    sources = [str(tmp_path / "x.tsv"), str(tmp_path / "x.jsonl"), f"{tmp_path / 'x.en'},{tmp_path / 'x.de'}"]
    assert len({fingerprint(DataConfig(source=source), TABLE) for source in sources}) == 1
    assert fingerprint(DataConfig(source=sources[0])) != fingerprint(DataConfig(source=sources[0]), TABLE)


def test_byte_pairs_are_learned_from_texts_and_not_from_labels(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("".join(f"word {i} word\tqqqqqqqq{i % 2}\n" for i in range(60)))
    data = DataConfig(source=str(tmp_path / "x.tsv"), tokeniser="bpe", vocab=300)
    tokens = next(prepare(data, table=LABELLED).tokeniser.encode([b"qqqqqqqq"]))
    assert len(tokens) == 9, "a label is bytes, for nothing was merged in it"
    assert corpus.labels(data, LABELLED) == ("qqqqqqqq0", "qqqqqqqq1")
