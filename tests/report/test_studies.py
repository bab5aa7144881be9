"""A study's report: verdicts, the study's own pictures, every table in full."""

import csv
import io
from pathlib import Path

import pytest

from deepwide.answers import Interval, Note
from deepwide.figures import clean
from deepwide.report import Facts, Figure, make_report, to_markdown, write_report
from deepwide.report import studies as reported
from deepwide.studies import Measured, StudyResult, read_result
from report.parts import EVIL, read
from report.test_markdown import rendered
from studies.fakes import Toys

FOLDER = Path(__file__).parents[2] / "results/studies/rank-collapse-cpu"


def hostile() -> StudyResult:
    measured = Measured(
        numbers={"done": Interval(1.0, 0.9, 1.0), EVIL: Interval(2.0)},
        tables={EVIL: [{EVIL: EVIL}]},
        notes=(Note.of("x", EVIL),),
    )
    return StudyResult(
        study=EVIL, preset="cpu", question=EVIL, source=EVIL, measured=measured, settings={EVIL: EVIL}, seconds=1.0,
        verdicts=tuple(rule.judge(measured) for rule in Toys.rules), rule_hash="1", rule_hash_at_start="2",
        code={EVIL: EVIL}, notes=(Note.of("x", EVIL),),
    )  # fmt: skip


def test_a_study_s_report_has_its_verdicts_numbers_and_tables() -> None:
    result = read_result(FOLDER)
    report = make_report(FOLDER)
    page = read(report)
    for verdict in result.verdicts:
        assert f"{verdict.outcome}: {verdict.claim}" in page.text
        assert verdict.rule in page.text
    files = page.files()
    for name, rows in result.measured.tables.items():
        again = list(csv.DictReader(io.StringIO(files[f"{name}.csv"].decode())))
        assert again == [{key: "" if value is None else str(value) for key, value in row.items()} for row in rows]
    assert StudyResult.model_validate_json(files["study.json"]) == result
    figures = [block for block in report.blocks() if isinstance(block, Figure)]
    assert sorted(figure.svg for figure in figures) == sorted(path.read_text() for path in FOLDER.glob("*.svg"))
    assert all(figure.alt for figure in figures)


def test_nothing_in_a_study_s_file_is_markup(tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text(hostile().model_dump_json())
    (tmp_path / "a.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>")
    report = make_report(tmp_path)
    assert "<script>alert(1)</script>" in read(report).text  # as text; in an image nothing runs
    tags = [tag for tag, _ in rendered(to_markdown(report)).tags]
    assert "script" not in tags
    assert tags.count("img") == 1
    assert "changed after the study was started" in read(report).text


def test_a_picture_that_is_too_large_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reported, "LARGEST_PICTURE", 1 << 20)
    (tmp_path / "study.json").write_text(hostile().model_dump_json())
    (tmp_path / "a.svg").write_text("x" * (1 << 20) + "x")
    assert "a.svg is larger than 1 MiB and is left out" in read(make_report(tmp_path)).text


def toys(**changes: object) -> StudyResult:
    measured = Measured(
        numbers={"done": Interval(1.0, 0.9, 1.0)},
        tables={
            "runs": [{"depth": depth, "loss": 1 / 3, "why": "a|b"} for depth in range(20)],
            "long": [{"a": number} for number in range(61)],
            "none": [],
        },
        notes=(Note.of("few", "there are few toys"),),
        seconds=90.0,
    )
    fields: dict[str, object] = {
        "study": "toys", "preset": "cpu", "question": Toys.question, "source": "https://example.org/toys",
        "settings": {"depths": [1, 2], "steps": 31}, "verdicts": tuple(rule.judge(measured) for rule in Toys.rules),
        "measured": measured, "seconds": 90.0, "rule_hash": "0123", "rule_hash_at_start": "0123",
        "code": {"deepwide": "9.9"},
    }  # fmt: skip
    return StudyResult.model_validate(fields | changes)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if toys were installed."""
    monkeypatch.setattr(reported, "find_study", lambda _: Toys())


@pytest.mark.usefixtures("known")
def test_the_page_has_claim_rule_measurement_verdict_settings_and_command(tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text(toys().model_dump_json())
    for name in ("runs.csv", "long.csv", "b.svg", "a.svg"):
        (tmp_path / name).write_text("x")
    page = write_report(tmp_path, tmp_path / "page.md").read_text()
    for words in (
        "# toys: Do toys finish?", "https://example.org/toys", "**reproduced: every toy finishes**",
        "- where: section 1", "- rule: reproduced if all runs are done", "- measured: done: 1 (95%: 0.9 to 1)",
        "![b](./b.svg)", "Toys are trained.", "- steps: 31", "- done: 1 (95%: 0.9 to 1)", "| 0 | 0.3333 | a\\|b |",
        "| 19 | 0.3333 |", "[runs.csv](./runs.csv)", "37 more of 61 rows are in the CSV. [long.csv](./long.csv)",
        "- there are few toys", "\n    deepwide study run toys --preset cpu --set steps=31\n", "It took 90 s.",
        "- deepwide version: 9.9", "- rules: 0123", "[study.json](./study.json)",
    ):  # fmt: skip
        assert words in page, words
    assert "data:" not in page
    assert "None:" not in page


@pytest.mark.usefixtures("known")
def test_a_page_elsewhere_has_everything_in_it(tmp_path: Path) -> None:
    home = tmp_path / "study"
    home.mkdir()
    (home / "study.json").write_text(toys().model_dump_json())
    (home / "runs.csv").write_text("not these")
    page = write_report(home, tmp_path / "page.md").read_text()
    assert "](./" not in page
    assert page.count("](data:") == 3
    (home / "runs.csv").unlink()
    assert write_report(home, home / "page.md").read_text().count("](data:text/csv") == 2, (
        "no link to what is not there"
    )


@pytest.mark.usefixtures("known")
def test_what_is_as_in_the_preset_is_not_in_the_command() -> None:
    same = toys(settings={"depths": [1, 2], "steps": 30})
    assert "\n    deepwide study run toys --preset cpu\n" in to_markdown(make_report(same))


@pytest.mark.usefixtures("known")
def test_a_claim_that_is_no_longer_judged_keeps_its_words() -> None:
    old = tuple(verdict.model_copy(update={"claim": "toys fly"}) for verdict in toys().verdicts)
    text = to_markdown(make_report(toys(verdicts=old)))
    assert "**reproduced: toys fly**" in text
    assert "- measured: 1 (95%: 0.9 to 1)" in text


def test_figures_stand_in_the_study_s_order(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.svg").write_text("x")
    (tmp_path / "study.json").write_text(toys(figures=("c", "a")).model_dump_json())
    figures = [block.name for block in make_report(tmp_path).blocks() if isinstance(block, Figure)]
    assert figures == ["c", "a", "b"]


PUBLISHED = sorted(FOLDER.parent.glob("*/study.json"))


@pytest.mark.parametrize("path", PUBLISHED, ids=[path.parent.name for path in PUBLISHED])
def test_a_published_page_is_the_report_of_its_folder(path: Path) -> None:
    """Written by `deepwide report FOLDER --out FOLDER/page.md`; its last line has the versions of that moment."""
    page = (path.parent / "page.md").read_text(encoding="utf-8").splitlines()
    assert page[:-1] == to_markdown(make_report(path.parent), path.parent).splitlines()[:-1]


@pytest.mark.parametrize("path", PUBLISHED, ids=[path.parent.name for path in PUBLISHED])
def test_html_and_markdown_say_the_same(path: Path) -> None:
    report = make_report(path.parent)
    html = read(report).text.split("</style>")[-1]
    markdown = rendered(to_markdown(report)).text
    for words in (html, markdown):
        for section in report.sections:
            assert section.title in words
        for block in report.blocks():
            if isinstance(block, Facts):
                assert all(" ".join(clean(text).split()) in " ".join(words.split()) for _, text in block.pairs)
