"""Sentences, mentions and names come out of annotated files as they were written; damage costs a sentence."""

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from deepwide.data import read_conllu, read_gap
from deepwide.data.treebanks import ROOT, Mention
from deepwide.errors import DeepwideError

CONLLU = """# newdoc id = first
# text = They don't sleep.
1\tThey\tthey\tPRON\t_\t_\t4\tnsubj\t_\tEntity=(7-person-new)
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\t_\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\t_\t_\t4\tadvmod\t_\t_
4\tsleep\tsleep\tVERB\t_\t_\t0\troot\t_\tSpaceAfter=No
4.1\tghost\t_\t_\t_\t_\t_\t_\t_\t_
5\t.\t.\tPUNCT\t_\t_\t4\tpunct\t_\t_

# newdoc id = second
1\tthe\tthe\tDET\t_\t_\t3\tdet\t_\tEntity=(1-place(2-thing|X=1
2\told\told\tADJ\t_\t_\t3\tamod\t_\tEntity=2)
3\thouse\thouse\tNOUN\t_\t_\t0\troot\t_\tEntity=1)(3-x)
"""


def test_words_heads_and_relations_are_read_without_multiword_tokens_and_ghosts(tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(CONLLU)
    first, second = read_conllu(tmp_path / "a.conllu")
    assert first.words == ("They", "do", "n't", "sleep", ".")
    assert first.heads == (3, 3, 3, ROOT, 3)
    assert first.relations == ("nsubj", "aux", "advmod", "root", "punct")
    assert first.tags[-1] == "PUNCT"
    assert (first.document, second.document) == ("first", "second")
    assert first.mentions == (Mention("7", 0, 0, 0),)
    assert second.mentions == (Mention("2", 0, 1, 0), Mention("1", 0, 2, 2), Mention("3", 2, 2, 2))


def test_packed_files_folders_and_archives_give_the_same(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "a.conllu.gz").write_bytes(gzip.compress(CONLLU.encode()))
    with tarfile.open(tmp_path / "all.tar.gz", "w:gz") as archive:
        for name in ("dep/a.conllu", "other/a.conllu", "dep/README"):
            entry = tarfile.TarInfo(name)
            entry.size = len(CONLLU.encode())
            archive.addfile(entry, io.BytesIO(CONLLU.encode()))
    sentences = list(read_conllu(tmp_path / "x"))
    assert len(sentences) == 2
    assert list(read_conllu(tmp_path / "all.tar.gz", "dep")) == sentences
    assert list(read_conllu(tmp_path / "all.tar.gz")) == 2 * sentences


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("1\tx\t_\t_\n", "not CoNLL-U: ten columns with tabs between"),
        ("2\tx\t_\tX\t_\t_\t0\troot\t_\t_\n", "words numbered from 1"),
        ("1\tx\t_\tX\t_\t_\t5\troot\t_\t_\n", "head is not another word of the sentence"),
        ("1\tx\t_\tX\t_\t_\t1\troot\t_\t_\n", "head is not another word of the sentence"),
        ("1\tx\t_\tX\t_\t_\t0\troot\t_\tEntity=3)\n", "end a mention of entity '3' that was never opened"),
    ],
)
def test_what_is_not_conllu_costs_a_sentence(line: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(line + "\n")
    with pytest.raises(DeepwideError, match=sentence) as error:
        list(read_conllu(tmp_path / "a.conllu"))
    assert "\n" not in str(error.value)


def test_what_is_not_there_costs_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "no.tar").write_bytes(b"nothing")
    for path, sentence in (
        (tmp_path / "no.conllu", "there is no file or folder"),
        (tmp_path / "empty", "holds no .conllu files"),
        (tmp_path / "no.tar", "is damaged or missing"),
    ):
        with pytest.raises(DeepwideError, match=sentence):
            list(read_conllu(path))
    with pytest.raises(DeepwideError, match="there is no file"):
        list(read_gap(tmp_path / "no.tsv"))


HEAD = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL\n"
ROW = "1\tMary Ann (left); O'Neil saw her.\ther\t28\tMary Ann\t0\tTRUE\tO'Neil\t17\tFALSE\tx\n"


def test_names_are_the_words_at_their_places(tmp_path: Path) -> None:
    (tmp_path / "gap.tsv").write_text(HEAD + ROW)
    (example,) = read_gap(tmp_path / "gap.tsv")
    assert example.words[example.pronoun] == "her"
    assert [[example.words[i] for i in name] for name in example.names] == [["Mary", "Ann"], ["O", "'", "Neil"]]
    assert example.meant == (True, False)


def test_what_is_not_gap_costs_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("Text\tLabel\n")
    with pytest.raises(DeepwideError, match="does not name the column 'Pronoun'"):
        list(read_gap(tmp_path / "a.tsv"))
    for wrong in (ROW.replace("28", "many"), ROW.replace("28", "900"), "1\tshort\n"):
        (tmp_path / "a.tsv").write_text(HEAD + wrong)
        with pytest.raises(DeepwideError, match=r"line 2 of .* is not an example of GAP"):
            list(read_gap(tmp_path / "a.tsv"))


def test_the_real_files_are_read_whole(shared_data: Path) -> None:
    development = list(read_conllu(shared_data / "ud_ewt" / "en_ewt-ud-dev.conllu.gz"))
    assert len(development) == 2001
    assert sum(len(s.words) for s in development) == sum(len(s.relations) for s in development)
    examples = list(read_gap(shared_data / "gap" / "gap-test.tsv"))
    assert len(examples) == 2000
    for example in examples[:50]:
        assert example.words[example.pronoun].lower() in {"he", "she", "his", "her", "him", "hers"}
