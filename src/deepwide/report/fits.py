"""The report of a fit, which a sweep's report holds too."""

import tempfile
from pathlib import Path

from deepwide import figures
from deepwide.fitting import Fit, TransitionFit
from deepwide.report.document import MOST_DRAWN, Attachment, Block, Facts, Notes, Report, Section, Table, Text, draw


def fit_report(fit: Fit) -> Report:
    """What the fit says, its coefficients, its pictures and the runs behind it."""
    verdict = fit.verdict()
    lead = f"{verdict.outcome.capitalize()}: {verdict.claim}."
    return Report("fit", f"{fit.kind.capitalize()} fit of {fit.source or 'runs'}", lead, fit_sections(fit))


def fit_sections(fit: Fit) -> tuple[Section, ...]:
    """The sections of a fit."""
    verdict = fit.verdict()
    noise = f"{100 * fit.noise:.2g}% of loss"
    if fit.seed_noise is not None:
        noise += f" ({100 * fit.seed_noise:.2g}% between seeds)"
    facts = (
        ("verdict", f"{verdict.outcome}: {verdict.claim}"),
        ("rule", verdict.rule),
        ("runs", f"{fit.runs:,}" + (f", {fit.diverged:,} of them diverged" if fit.diverged else "")),
        ("noise", noise),
        ("resamples", f"{len(fit.resamples):,}"),
    )
    alarms = Notes(tuple(map(str, fit.warnings)), warning=True)
    words: tuple[Block, ...] = (
        *map(Text, fit.headline()),
        *([alarms] if fit.warnings else []),
        Facts(facts),
    )
    remarks = (Notes(tuple(map(str, fit.notes))),) if fit.notes else ()
    sections = [Section("What the fit says", (*words, *remarks)), Section("Figures", tuple(fit_figures(fit)))]
    tables: list[Block] = []
    if fit.names:
        titles = {
            "name": "coefficient", "estimate": "estimate", "standard_error": "standard error", "low": "from",
            "high": "to", "bootstrap_low": "bootstrap from", "bootstrap_high": "bootstrap to",
        }  # fmt: skip
        caption = f"Coefficients; from, to: 95% by {fit.estimated_by}, and by the bootstrap."
        tables.append(Table.of("coefficients", fit.rows(), caption, titles))
    if fit.residuals:
        groups = fit.rows("groups")
        if not any(row["leverage"] for row in groups):  # a joint fit has none
            groups = [{key: value for key, value in row.items() if key != "leverage"} for row in groups]
        tables.append(Table.of("groups", groups, "All seeds of one shape in one row."))
    return (*sections, Section("Numbers", (*tables, _saved(fit))))


def fit_figures(fit: Fit) -> list[Block]:
    """The pictures that this kind of fit has; a note where one cannot be drawn."""
    size = "Loss against size, one curve per depth, and where a deeper model overtakes a shallower one"
    if len(fit.residuals) > MOST_DRAWN:
        return [
            Notes((f"Without figures: {len(fit.residuals):,} runs are more than the {MOST_DRAWN:,} that are drawn.",))
        ]
    blocks: list[Block] = []
    if isinstance(fit, TransitionFit):
        blocks.append(draw("curves", lambda: figures.loss_curves(fit), size))
    elif fit.counting == "block" and all(run.depth is not None for run in fit.residuals):
        runs = [
            {"depth": f"{run.depth:g}", "block_params": run.params, "loss": run.loss}
            for run in fit.residuals
            if not run.diverged
        ]
        blocks.append(draw("runs", lambda: figures.run_chart(runs), "Loss against size, every finished run"))
    if fit.law() is not None:
        blocks.append(draw("law", lambda: figures.fitted_map(fit), "The fitted law on the depth–width map"))
    blocks.append(draw("residuals", lambda: figures.residual_plot(fit), "What the fit does not explain, run by run"))
    return blocks


def _saved(fit: Fit) -> Attachment:
    """The fit as `load_fit` reads it."""
    with tempfile.TemporaryDirectory() as folder:
        document = fit.save(Path(folder) / "fit.json").read_bytes()
    return Attachment("fit.json", document, "application/json")
