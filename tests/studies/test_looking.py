"""What the study of heads measures, on networks whose attention is known word by word."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from deepwide.data import Sentence
from deepwide.data.treebanks import Mention
from deepwide.errors import DeepwideError
from deepwide.studies import looking
from deepwide.studies.looking import Reader, antecedents_found, dependencies, folder_of, names_told_apart

AMOUNTS: Any = SimpleNamespace(
    data="", sentences=100, longest=60, documents=2, window=50, names=10, closely=5, directions=2, seed=0
)


class Known(Reader):
    """A network of one layer whose heads look where functions of the sentence say."""

    def words(self, words: Any) -> Any:
        attention = np.full((1, 2, len(words), len(words)), 0.01)
        for i in range(len(words)):
            attention[0, 0, i, max(0, i - 1)] = 1  # head 1 looks at the word before
            attention[0, 1, i, min(len(words) - 1, i + 2)] = 1  # head 2 at the one after the next
        return attention


@pytest.fixture
def reader() -> Reader:
    shape = SimpleNamespace(depth=1, heads=2, context=100)
    return Known(SimpleNamespace(design=SimpleNamespace(shape=shape)), lambda _: ([], []), {}, pretrained=True)


def chain(words: int, step: int, relation: str) -> Sentence:
    """A sentence in which each word's head is `step` words away, where there is one."""
    heads = [i + step if 0 <= i + step < words else -1 for i in range(words)]
    names = [relation if head >= 0 else "root" for head in heads]
    return Sentence(tuple(f"w{i}" for i in range(words)), tuple(heads), tuple(names), ("NOUN",) * words)


def test_relations_are_found_by_the_head_that_looks_there(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [[chain(9, -1, "det"), chain(8, 2, "obj")] * 3] * 2
    monkeypatch.setattr(looking, "corpora", lambda _: {"development": 0, "test": 1})
    monkeypatch.setattr(looking, "_sentences", lambda path, *_: parts[path])
    tables, numbers = dependencies(reader, AMOUNTS)
    rows = {row["relation"]: row for row in tables["relations"]}
    assert (rows["det"]["head"], rows["det"]["direction"], rows["det"]["accuracy"]) == (1, "to its head", 1.0)
    assert (rows["obj"]["head"], rows["obj"]["accuracy"], rows["obj"]["words"]) == (2, 1.0, 18)
    assert (rows["det"]["offset"], rows["det"]["offset_accuracy"]) == (-1, 1.0), "a chain is an offset too"
    assert rows["obj"]["less_offset"] == 0
    assert rows["all"]["words"] == 3 * (8 + 6)
    assert rows["all"]["accuracy"] == pytest.approx(8 / 14)
    assert numbers[looking.ALL_WORDS].value == rows["all"]["accuracy"]
    assert {row["layer"] for row in tables["by_layer"]} == {1}
    assert len(tables["example"]) == 2 * len(looking.EXAMPLE.split()) ** 2


def test_a_head_is_chosen_on_one_part_and_measured_on_the_other(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [[chain(9, -1, "det")], [chain(9, 2, "det")]]
    monkeypatch.setattr(looking, "corpora", lambda _: {"development": 0, "test": 1})
    monkeypatch.setattr(looking, "_sentences", lambda path, *_: parts[path])
    (row,) = (row for row in dependencies(reader, AMOUNTS)[0]["relations"] if row["relation"] == "det")
    assert row["head"] == 1
    assert row["accuracy"] == 0, "what was best there is wrong here, and is not chosen again"


def test_words_are_dropped_where_the_network_cannot_read_them() -> None:
    shape = SimpleNamespace(context=3)
    network: Any = SimpleNamespace(design=SimpleNamespace(shape=shape))
    assert Reader(network, lambda _: ([1, 2, 3, 4], [0, 1, 2, 3]), {}, False).words(["a"] * 4) is None, "too long"
    assert Reader(network, lambda _: ([1, 2], [0, 2]), {}, False).words(["a", "", "b"]) is None, "a word without token"


def document(name: str) -> list[Sentence]:
    """Entity 7 is mentioned at words 0 and 1 of the second sentence; entity 8 between."""
    first = Sentence(("He", "saw", "her"), (1, -1, 1), ("nsubj", "root", "obj"), ("PRON",) * 3,
                     (Mention("7", 0, 0, 0), Mention("8", 2, 2, 2)), name)  # fmt: skip
    second = Sentence(("him", "too"), (-1, 0), ("root", "advmod"), ("PRON", "ADV"), (Mention("7", 0, 0, 0),), name)
    return [first, second]


def test_antecedents_are_those_of_the_same_entity(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(looking._mentions(document("a"))) == [(3, {0}, 2, 2)], "the mention before it is another entity's"
    sentences = [sentence for name in "abcd" for sentence in document(name)]
    monkeypatch.setattr(looking, "corpora", lambda _: {"gum": ""})
    monkeypatch.setattr(looking, "read_conllu", lambda *_: iter(sentences))
    tables, numbers = antecedents_found(reader, AMOUNTS)
    (row,) = tables["antecedents"]
    assert (row["mentions"], row["accuracy"], row["nearest"], row["same_word"]) == (2, 0.0, 0.0, 0.0)
    assert numbers[looking.ANTECEDENT_LESS].value == 0
    with pytest.raises(DeepwideError, match="GUM has 4 documents: ask for at most 2 on either side"):
        antecedents_found(reader, SimpleNamespace(**vars(AMOUNTS) | {"documents": 9}))


def test_the_rival_of_a_head_takes_the_last_mention_with_the_same_head_word() -> None:
    """Case does not matter, and a mention between is passed over; see the test above for one without such a word."""
    mentions = (Mention("7", 0, 0, 0), Mention("8", 1, 1, 1), Mention("7", 2, 2, 2))
    sentence = Sentence(("Dogs", "cats", "dogs"), (-1, 0, 0), ("root", "obj", "obj"), ("NOUN",) * 3, mentions, "a")
    assert list(looking._mentions([sentence])) == [(2, {0}, 1, 0)]


def test_a_mention_is_not_its_own_antecedent() -> None:
    """Two mentions of one entity may have one head word, as a name and the phrase around it do."""
    both = (Mention("7", 0, 0, 0), Mention("7", 0, 2, 0))
    phrase = Sentence(("Ann", "the", "queen"), (-1, 2, 0), ("root", "det", "appos"), ("NOUN",) * 3, both, "a")
    assert list(looking._mentions([phrase])) == []


def test_sentences_are_spread_over_the_treebank(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kinds of text stand one after the other."""
    sentences = [chain(words, 1, "det") for words in (2, 3, 1, 4, 5, 99, 6, 7)]
    monkeypatch.setattr(looking, "read_conllu", lambda _: iter(sentences))
    assert [len(s.words) for s in looking._sentences(Path(), AMOUNTS, 3)] == [2, 4, 6]
    assert [len(s.words) for s in looking._sentences(Path(), AMOUNTS, 99)] == [2, 3, 4, 5, 6, 7]


def test_windows_are_whole_sentences_of_a_document() -> None:
    sentences = [chain(words, 1, "det") for words in (4, 4, 4, 20, 1)]
    sizes = [[len(s.words) for s in window] for window in looking._windows(sentences, 9)]
    assert sizes == [[4, 4], [4], [20], [1]]


def test_names_are_told_apart_where_one_is_meant(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "Ann met Bo . She left"  # head 1 looks from "She" at the word before, nothing at the names
    head = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL\n"
    rows = [f"{i}\t{text}\tShe\t13\tAnn\t0\t{'TRUE' if i % 2 else 'FALSE'}\tBo\t8\tFALSE\tx\n" for i in range(4)]
    (tmp_path / "gap.tsv").write_text(head + "".join(rows))
    files = dict.fromkeys(("gap development", "gap test"), tmp_path / "gap.tsv")
    monkeypatch.setattr(looking, "corpora", lambda _: files)
    (row,) = names_told_apart(reader, AMOUNTS)[0]["names"]
    assert row["examples"] == 2, "those that mean neither do not count"
    assert row["nearer"] == 0, "Bo is nearer, Ann is meant"


def test_shares_and_their_intervals_weigh_words_alike() -> None:
    hits, words = np.array([1.0, 0.0, 4.0]), np.array([1.0, 1.0, 8.0])
    share = looking._share(hits, words)
    assert share.value == 0.5
    assert share.low is not None
    assert share.high is not None
    assert 0 <= share.low <= 0.5 <= share.high <= 1


def test_a_model_is_a_folder_or_a_name_in_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert folder_of(str(tmp_path), "") == tmp_path
    assert folder_of("mini", str(tmp_path)) == tmp_path / "encoders" / "mini"
    monkeypatch.delenv("DEEPWIDE_DATA", raising=False)
    with pytest.raises(DeepwideError, match="set DEEPWIDE_DATA to the folder that holds encoders/mini"):
        folder_of("mini", "")
