"""What a folder, a file or a word is, and the report that it gives."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from deepwide.errors import DeepwideError, did_you_mean, quoted
from deepwide.files import LARGEST_JSON, read_json
from deepwide.planning import Audit, Plan, audit, plan
from deepwide.report.document import Report, versions_now
from deepwide.report.plans import audit_report, plan_report
from deepwide.settings import explain

TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".gz")
LARGEST_TOML = 1 << 20  # bytes
FITS = ("joint", "transition", "ridge", "surface")
RUN_KEYS = {"config", "data", "numerics"}  # of a run's config.json, which a model's has not
MAKERS = (
    "a report is made of a folder of runs, a sweep's TOML file, a table of runs, a study's folder, a model's config, a "
    "budget, or the JSON of a plan, an audit, a fit, a sweep's state or a study"
)


def make_report(source: Any, *, fit: str = "joint", runs: str | Path | None = None) -> Report:
    """The report of an answer (or several audits), or of what a path or a word names; `fit` is the kind of fit.

    `runs` is where the runs of a sweep's TOML file are, `runs/NAME` by default.

    >>> make_report("1.3B").title
    'Plan for 1.3B block parameters'
    """
    if fit not in FITS:
        raise DeepwideError(f"no kind of fit {quoted(fit)}: {did_you_mean(str(fit), FITS)}")
    if runs is not None and not str(source).endswith(".toml"):
        raise DeepwideError(
            f"a folder of runs ({quoted(runs)}) is given beside a sweep's TOML file, and {quoted(source)} is none: "
            "report the folder itself, or leave it out."
        )
    report = _of_path(source, fit, runs) if isinstance(source, str | Path) else _of_answer(source, fit)
    return replace(report, source=report.source or _words(source), versions=versions_now())


def _words(source: Any) -> str:
    return str(source) if isinstance(source, str | Path) else f"an answer of the type {type(source).__name__}"


def _of_answer(answer: Any, kind: str) -> Report:
    """By type; what only some reports need is loaded when it is seen."""
    if isinstance(answer, Plan):
        return plan_report(answer)
    if isinstance(answer, Audit):
        return audit_report([answer])
    if isinstance(answer, Sequence) and answer and all(isinstance(one, Audit) for one in answer):
        return audit_report(answer)
    name = type(answer).__name__
    if name == "SweepState":
        from deepwide.report.sweeps import sweep_report

        return sweep_report(answer, kind)
    if name == "StudyResult":
        from deepwide.report.studies import study_report

        return study_report(answer)
    if name in ("JointFit", "TransitionFit", "RidgeFit", "SurfaceFit"):
        from deepwide.report.fits import fit_report

        return fit_report(answer)
    raise DeepwideError(f"there is no report of {quoted(answer)}: {MAKERS}.")


def _of_path(source: str | Path, kind: str, runs: str | Path | None) -> Report:
    path = Path(source)
    if path.is_dir():
        return _of_folder(path, kind)
    if not path.exists():
        return _of_word(source)
    if not path.is_file():
        raise DeepwideError(f"{path} is not a regular file: {MAKERS}.")
    if path.suffix == ".toml":
        return _of_toml(path, kind, runs)
    if path.suffix == ".json":
        return _of_json(path, kind)
    if path.suffix in TABLES:
        return _of_table(path, kind)
    raise DeepwideError(f"{path} is none of these: {MAKERS}.")


def _of_toml(path: Path, kind: str, runs: str | Path | None) -> Report:
    import tomllib

    from deepwide.report.sweeps import sweep_report
    from deepwide.sweeping import sweep_state

    if path.stat().st_size > LARGEST_TOML:
        raise DeepwideError(f"{path} is larger than {LARGEST_TOML >> 20} MiB, too large for a sweep's TOML file.")
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8", errors="replace"))
    except tomllib.TOMLDecodeError as error:
        raise DeepwideError(f"{path} is not TOML ({error}), so it is no sweep.") from None
    if not document.keys() & {"grid", "iso", "run"}:
        raise DeepwideError(f"{path} is no sweep: it has neither [grid] nor [iso] nor [run].")
    return sweep_report(sweep_state(path, runs), kind)


def _of_word(word: str | Path) -> Report:
    """A budget, or a model of the catalogue; never a path that has a folder or an ending."""
    text = str(word)
    if isinstance(word, Path) or "/" in text or Path(text).suffix in (".json", ".toml", *TABLES):
        raise DeepwideError(f"There is no file or folder {text}.")
    if text[:1].isdigit():
        return plan_report(plan(text))
    try:
        return audit_report([audit(text)])
    except DeepwideError as error:
        near = str(error).partition(": did you mean ")[2]
        hint = f"did you mean {near}" if near else f"{MAKERS}."
        raise DeepwideError(f"There is no file, folder, budget or public model {quoted(text)}: {hint}") from None


def _of_folder(folder: Path, kind: str) -> Report:
    """A study's folder, a folder of runs, or the folder of a model's config."""
    if (folder / "study.json").exists():
        from deepwide.report.studies import study_report
        from deepwide.studies import read_result

        return study_report(read_result(folder), folder)
    if (folder / "started.json").exists():
        raise DeepwideError(f"the study in {folder} has not finished: run it again, and it resumes.")
    from deepwide.report.sweeps import runs_report
    from deepwide.run import read_runs
    from deepwide.sweeping import run_rows

    begun = any((folder / name).exists() for name in ("lease.json", "result.json"))
    if (folder / "config.json").exists() and not begun:
        config = read_json(folder / "config.json", "a config")
        if not (isinstance(config, dict) and config.keys() >= RUN_KEYS):
            return audit_report([audit(folder)])
    if rows := run_rows(folder):
        return runs_report(folder, rows, kind)
    inside = [path for path in sorted(folder.iterdir()) if path.is_dir()]
    studies = [path for path in inside if (path / "study.json").exists()]
    for what, homes in (("folder of runs", [path for path in inside if read_runs(path)]), ("study", studies)):
        if len(homes) == 1:
            raise DeepwideError(f"{folder} is not a {what} but holds one: give {homes[0]}.")
        if homes:
            names = ", ".join(path.name for path in homes[:5]) + (" …" if len(homes) > 5 else "")
            number = {"study": "studies"}.get(what, "folders of runs")
            raise DeepwideError(f"{folder} holds {len(homes)} {number} ({names}): give one of them.")
    raise DeepwideError(f"{folder} has no run, no study and no model's config in it: {MAKERS}.")


def _of_json(path: Path, kind: str) -> Report:
    """By what the document has."""
    document = read_json(path, "a plan, an audit, a fit, a sweep's state, a study or a config", most=LARGEST_JSON)
    keys = document.keys() if isinstance(document, dict) else set()
    if "format" in keys and str(document["format"]).startswith("deepwide-fit"):
        from deepwide.fitting import load_fit

        return _of_answer(load_fit(path), kind)
    if "format" in keys and str(document["format"]).startswith("deepwide-law"):
        raise DeepwideError(
            f"{path} is a fitted law, without the runs behind it: report the fit, or plan with the law and report that."
        )
    if {"names", "covariance"} <= keys:
        raise DeepwideError(
            f"{path} is a fit without its residuals and resamples: save the whole fit, and report that."
        )
    if "budget_kind" in keys:
        return plan_report(_read(path, Plan, document, "miss"))
    if "depth_over_law" in keys:
        document = [document]
    if isinstance(document, list) and any(isinstance(one, dict) and "depth_over_law" in one for one in document):
        return _of_audits(path, document)
    if {"study", "verdicts"} <= keys:
        from deepwide.report.studies import study_report
        from deepwide.studies import StudyResult

        return study_report(_read(path, StudyResult, document), path.parent if path.name == "study.json" else None)
    if {"cells", "counts", "runs"} <= keys:
        from deepwide.sweeping import SweepState

        return _of_answer(_read(path, SweepState, document), kind)
    if keys & {"model_type", "architectures", "num_hidden_layers", "n_layer", "hidden_size"}:
        return audit_report([audit(path)])
    if isinstance(document, list) and document and all(isinstance(row, dict) for row in document):
        return _of_table(path, kind)
    raise DeepwideError(f"{path} is none of these: {MAKERS}.")


def _of_audits(path: Path, documents: Sequence[Any]) -> Report:
    """What an audit of several models prints: an audit each, or why there is none."""
    audits, failures = [], []
    for one in documents:
        if not isinstance(one, dict):
            raise DeepwideError(f"{path} is not a list of audits: one of them is {quoted(one)}.")
        if "error" in one:
            failures.append((str(one.get("name", "")), str(one["error"])))
        else:
            audits.append(_read(path, Audit, one, "cost"))
    return audit_report(audits, failures)


def _of_table(path: Path, kind: str) -> Report:
    from deepwide.fitting import fit

    return _of_answer(fit(path, kind), kind)  # type: ignore[arg-type]


def _read(path: Path, model: Any, document: dict[str, Any], *computed: str) -> Any:
    """The answer in a document, without what it computes itself."""
    fields = {name: value for name, value in document.items() if name not in computed}
    try:
        return model.model_validate(fields, strict=False)
    except ValidationError as error:
        what = model.__name__
        raise DeepwideError(f"{path} is not a {what} of this version: {explain(error, model)}") from None
