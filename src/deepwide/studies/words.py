"""Times and numbers of a study, in words."""

from deepwide.answers import Interval
from deepwide.quantities import show_seconds
from deepwide.studies.rules import Measured
from deepwide.studies.study import Study, StudyResult


def show_time(measured: Measured) -> str:
    """What training and measuring took, as a sentence."""
    training, measuring = measured.training_seconds, measured.measuring_seconds
    if training is None or measuring is None:
        return f"It took {show_seconds(measured.seconds)}."
    if not training:
        return f"Measuring took {show_seconds(measuring)}."
    return f"Training took {show_seconds(training)} of one worker, measuring {show_seconds(measuring)}."


def show_measured(study: Study | None, result: StudyResult, index: int) -> str:
    """The number that a verdict rests on, and what it is where the study has the rule; nothing where there is none."""
    verdict = result.verdicts[index]
    if (interval := verdict.measured) is None:
        return ""
    rules = {rule.claim.statement: rule for rule in study.rules} if study else {}
    rule = rules.get(verdict.claim)
    quantity = rule.quantity_in(result.measured, interval) if rule else ""
    return f"{quantity}: {show_interval(interval)}" if quantity else show_interval(interval)


def show_interval(interval: Interval) -> str:
    """0.36 (95%: 0.27 to 0.45), with more digits where four would show no difference."""
    if interval.low is None or interval.high is None:
        whole = float(interval.value).is_integer() and abs(interval.value) < 1e15
        return f"{interval.value:,.0f}" if whole else f"{interval.value:.4g}"
    low, high = interval.low, interval.high
    digits = next((n for n in range(4, 10) if low == high or f"{low:.{n}g}" != f"{high:.{n}g}"), 4)
    return f"{interval.value:.{digits}g} (95%: {low:.{digits}g} to {high:.{digits}g})"
