"""The study of heads: its rules on made-up measurements, and a run on made-up networks and treebanks."""

import json
from pathlib import Path
from typing import Any

import pytest

from deepwide.answers import Interval
from deepwide.errors import DeepwideError
from deepwide.studies import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Measured, find_study, run_study
from deepwide.studies.heads import LAYERS, RELATIONS, WIDTH
from deepwide.studies.looking import ALIKE, ALL_LESS, ALL_WORDS, ANTECEDENT_LESS, GRADIENT, SEPARATOR
from studies.published import check_judged_by_the_rules_that_stand_here, check_said_on_the_page, published

KEYS = ("specialised", "sharp", "no-head", "coreference", "separator", "unimportant", "alike")
PUBLISHED = {"det": 0.943, "obj": 0.868, "nmod:poss": 0.805, "aux:pass": 0.941, "compound:prt": 0.991}
OFFSET = {"det": 0.517, "obj": 0.4, "nmod:poss": 0.477, "aux:pass": 0.825, "compound:prt": 0.914}


def around(value: float, half: float = 0.02) -> Interval:
    return Interval(value, value - half, value + half)


def outcomes(
    depth: int = 12, width: int = 768, sentences: int = 60, words: int = 100, **changes: Any
) -> dict[str, str]:
    """What the rules say of the published numbers with some changed."""
    accuracy = PUBLISHED | changes.pop("accuracy", {})
    rows = [
        {"relation": name, "words": words, "pretrained": True, "depth": d, "accuracy": value - away}
        | {"low": value - away - 0.02, "high": value - away + 0.02, "less_offset": value - away - OFFSET[name]}
        | {"less_low": value - away - OFFSET[name] - 0.03, "less_high": value - away - OFFSET[name] + 0.03}
        for d, away in ((depth, 0.0), (3, 0.6))
        for name, value in accuracy.items()
    ]
    numbers = {
        "sentences looked at closely": Interval(sentences), LAYERS: Interval(depth), WIDTH: Interval(width),
        ALL_WORDS: around(0.347), ALL_LESS: around(0.08), ANTECEDENT_LESS: around(0.38), SEPARATOR: around(0.6),
        GRADIENT: around(0.2), ALIKE: around(0.05),
    } | {name: around(value) for name, value in changes.items()}  # fmt: skip
    measured = Measured(numbers=numbers, tables={"relations": rows})
    rules = find_study("heads").rules
    assert tuple(rule.claim.key for rule in rules) == KEYS
    return {rule.claim.key: rule.judge(measured).outcome for rule in rules}


def test_what_the_paper_says_is_reproduced() -> None:
    assert set(outcomes().values()) == {REPRODUCED}


@pytest.mark.parametrize(
    ("changes", "key", "outcome"),
    [
        ({"accuracy": {"compound:prt": 0.8}}, "specialised", NOT_REPRODUCED),
        ({"accuracy": {"compound:prt": 0.92}}, "specialised", NOT_DECIDABLE),
        ({"accuracy": {"obj": 0.7}}, "sharp", NOT_REPRODUCED),
        ({"accuracy": {"obj": 0.76}}, "sharp", NOT_DECIDABLE),
        ({"accuracy": {"nmod:poss": 0.7}}, "sharp", REPRODUCED),
        ({ALL_WORDS: 0.6}, "no-head", NOT_REPRODUCED),
        ({ALL_LESS: -0.1}, "no-head", NOT_REPRODUCED),
        ({ALL_LESS: 0.01}, "no-head", NOT_DECIDABLE),
        ({ANTECEDENT_LESS: -0.1}, "coreference", NOT_REPRODUCED),
        ({SEPARATOR: 0.3}, "separator", NOT_REPRODUCED),
        ({SEPARATOR: 0.49}, "separator", NOT_DECIDABLE),
        ({GRADIENT: 1.2}, "unimportant", NOT_REPRODUCED),
        ({GRADIENT: 0.7}, "unimportant", NOT_DECIDABLE),
        ({ALIKE: -0.1}, "alike", NOT_REPRODUCED),
    ],
)
def test_each_rule_can_say_each_thing(changes: dict[str, Any], key: str, outcome: str) -> None:
    found = outcomes(**changes)
    assert found[key] == outcome
    assert {name for name, value in found.items() if value != REPRODUCED} <= {key}


def test_little_text_or_a_shallow_network_decides_less() -> None:
    assert set(outcomes(sentences=10, words=10).values()) == {NOT_DECIDABLE}
    for smaller in (outcomes(depth=6), outcomes(width=384)):
        assert [key for key, value in smaller.items() if value == NOT_DECIDABLE] == ["separator", "unimportant"]
    nothing = Measured(numbers={"sentences looked at closely": Interval(60)})
    assert {rule.judge(nothing).outcome for rule in find_study("heads").rules} == {NOT_DECIDABLE}


def sentence(number: int) -> str:
    words = ["The", "cat", "saw", "his", f"dog{number % 5}", "."]
    heads, names = [2, 3, 0, 5, 3, 3], ["det", "nsubj", "root", "nmod:poss", "obj", "punct"]
    tags = ["DET", "NOUN", "VERB", "PRON", "NOUN", "PUNCT"]
    marks = ["Entity=(1-animal", "Entity=1)", "_", "Entity=(2-animal(1)".replace("(1)", ""), "Entity=2)", "_"]
    rows = zip(range(1, 7), words, tags, heads, names, marks, strict=True)
    return "".join(f"{i}\t{w}\t_\t{t}\t_\t_\t{h}\t{r}\t_\t{m}\n" for i, w, t, h, r, m in rows) + "\n"


def treebank(names: list[str]) -> str:
    return "".join(f"# newdoc id = {name}\n" + "".join(sentence(i) for i in range(3)) for name in names)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of data: a treebank, mentions, names, a text, and a small random BERT with its tokeniser."""
    import gzip
    import io
    import tarfile

    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    from model.builders import hugging_face

    monkeypatch.setenv("DEEPWIDE_CACHE", str(tmp_path / "cache"))
    for name in ("ud_ewt", "gum", "gap"):
        (tmp_path / name).mkdir()
    for part in ("dev", "test"):
        content = gzip.compress(treebank(["a", "b", "c"]).encode())
        (tmp_path / "ud_ewt" / f"en_ewt-ud-{part}.conllu.gz").write_bytes(content)
    with tarfile.open(tmp_path / "gum" / "gum_dep_coref.tar.gz", "w:gz") as archive:
        content = treebank([f"d{i}" for i in range(4)]).encode()
        entry = tarfile.TarInfo("dep/all.conllu")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    head = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL\n"
    row = "1\tThe cat saw his dog1 .\this\t12\tcat\t4\tTRUE\tdog1\t16\tFALSE\tx\n"
    for part in ("development", "test"):
        (tmp_path / "gap" / f"gap-{part}.tsv").write_text(head + 3 * row)
    (tmp_path / "text.txt").write_text("\n\n".join(f"The cat {i} saw his dog. " * 40 for i in range(40)))
    theirs = hugging_face("bert", max_position_embeddings=40)
    theirs.save_pretrained(tmp_path / "encoders" / "small")
    words = ["[CLS]", "[SEP]", "[UNK]", "The", "cat", "saw", "his", "dog", *"01234", "."]
    pieces = models.WordPiece({word: i for i, word in enumerate(words)} | {"##" + d: 20 + int(d) for d in "01234"},
                              unk_token="[UNK]")  # fmt: skip
    tokenizer = Tokenizer(pieces)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 1)]
    )
    tokenizer.save(str(tmp_path / "encoders" / "small" / "tokenizer.json"))
    return tmp_path


def small(home: Path) -> tuple[str, ...]:
    return (
        f'data="{home}"', 'models=["small"]', "depths=[1]", f'text="{home / "text.txt"}"', "vocab=300", "width=16",
        "steps=3", "batch=2", "sentences=6", "documents=2", "names=3", "closely=3", "directions=2", "window=12",
    )  # fmt: skip


def test_a_tiny_run_measures_everything_and_decides_nothing(home: Path, tmp_path: Path) -> None:
    result = run_study("heads", changes=small(home), out=tmp_path / "out", processes=1)
    assert {verdict.outcome for verdict in result.verdicts} == {NOT_DECIDABLE}
    tables = result.measured.tables
    models = {"small": 3 * 4, "decoder of 1 layers": 1}
    assert {row["model"] for row in tables["heads"]} == set(models)
    assert sum(row["model"] == "small" for row in tables["heads"]) == 12, "layers × heads"
    for row in tables["heads"]:
        assert all(0 <= row[kind] <= 1 for kind in ("next", "previous", "self", "[CLS]", "[SEP]", "punctuation"))
    found = {row["relation"]: row for row in tables["relations"] if row["model"] == "small"}
    assert set(found) == {"det", "nsubj", "nmod:poss", "obj", "all"}
    assert found["det"]["offset_accuracy"] == 1, "in the one sentence there is, an offset is always right"
    assert found["all"]["words"] == 6 * 4
    assert all(row["mentions"] > 0 for row in tables["antecedents"])
    assert {row["examples"] for row in tables["names"]} == {3}
    for picture in ("relations", "plane", "example", "shares", "accuracy"):
        assert "<svg" in (tmp_path / "out" / f"{picture}.svg").read_text()
    again = run_study("heads", changes=small(home), out=tmp_path / "again", processes=1)
    assert json.loads(again.measured.model_dump_json(exclude={"seconds", "training_seconds", "measuring_seconds"})) == (
        json.loads(result.measured.model_dump_json(exclude={"seconds", "training_seconds", "measuring_seconds"}))
    )


def test_encoders_alone_need_no_training(home: Path, tmp_path: Path) -> None:
    result = run_study("heads", changes=(*small(home), "depths=[]"), out=tmp_path / "out")
    assert {row["model"] for row in result.measured.tables["relations"]} == {"small"}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ('models=["nowhere"]', "nowhere has no config.json: it must be a BERT in Hugging Face's layout"),
        ("documents=9", "GUM has 4 documents: ask for at most 2 on either side"),
        ("sentences=0", "sentences"),
        ('data="/nowhere"', "nowhere"),
    ],
)
def test_settings_that_measure_nothing_cost_a_sentence(change: str, sentence: str, home: Path, tmp_path: Path) -> None:
    with pytest.raises(DeepwideError, match=sentence) as caught:
        run_study("heads", changes=(*small(home), "depths=[]", change), out=tmp_path / "out")
    assert "\n" not in str(caught.value)


def test_relations_of_the_claims_are_those_of_the_treebank(shared_data: Path) -> None:
    from deepwide.data import read_conllu

    seen = {name for s in read_conllu(shared_data / "ud_ewt" / "en_ewt-ud-test.conllu.gz") for name in s.relations}
    assert set(RELATIONS) <= seen


def test_what_is_published_was_judged_by_these_rules() -> None:
    check_judged_by_the_rules_that_stand_here("heads")


def test_the_page_quotes_what_was_measured() -> None:
    tables = published("heads").measured.tables
    (found,) = (row for row in tables["antecedents"] if row["model"] == "gte-small")
    relations = {row["relation"]: row for row in tables["relations"] if row["model"] == "gte-small"}
    accuracy, offset = (
        {name: f"{relations[name][key]:.0%}" for name in RELATIONS} for key in ("accuracy", "offset_accuracy")
    )
    check_said_on_the_page(
        f"find their noun to {accuracy['det']} (the best offset {offset['det']})",
        f"their verb to {accuracy['obj']} ({offset['obj']})",
        f"possessives to {accuracy['nmod:poss']} ({offset['nmod:poss']})",
        f"passive auxiliaries to {accuracy['aux:pass']} ({offset['aux:pass']})",
        f"particles to {accuracy['compound:prt']} ({offset['compound:prt']})",
        f"an antecedent for {found['accuracy']:.0%} of mentions",
        f"same head word is one for {found['same_word']:.0%}",
        f"{-100 * found['less_same_word']:.0f} points worse ({-100 * found['less_high']:.0f} to "
        f"{-100 * found['less_low']:.0f})",
        f"which is one for {found['nearest']:.0%}",
    )
