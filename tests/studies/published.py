"""What is published of a study, results/studies/NAME-RUN, judged again; and its numbers in docs/studies.md."""

from pathlib import Path

from deepwide.studies import StudyResult, find_study, read_result

ROOT = Path(__file__).parents[2]


def published(name: str, run: str = "cpu") -> StudyResult:
    return read_result(ROOT / "results" / "studies" / f"{name}-{run}")


def check_judged_by_the_rules_that_stand_here(name: str, run: str = "cpu") -> None:
    """A changed rule needs a new run: the hash in the result is that of the rules in the file."""
    result, study = published(name, run), find_study(name)
    assert result.rule_hash == result.rule_hash_at_start == study.rule_hash
    assert [rule.judge(result.measured) for rule in study.rules] == list(result.verdicts)


def check_said_on_the_page(*quotes: str) -> None:
    """Numbers as docs/studies.md has them, wherever its lines break."""
    page = " ".join((ROOT / "docs" / "studies.md").read_text(encoding="utf-8").split())
    assert [quote for quote in quotes if quote not in page] == []


def estimate(value: float, low: float, high: float, form: str) -> str:
    """0.36 (0.27 to 0.45), in a format."""
    return f"{value:{form}} ({low:{form}} to {high:{form}})"
