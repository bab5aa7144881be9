"""The kinds of fit behind one function, and back from JSON.

Each kind is a module of its name with a function `fit_KIND` and a class `KindFit`, loaded when it is asked for.
"""

from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from pydantic import ValidationError

from deepwide.errors import DeepwideError, did_you_mean, needs
from deepwide.files import read_json
from deepwide.fitting.answer import FORMAT, Fit
from deepwide.fitting.arguments import check_arguments
from deepwide.fitting.choose import Limit
from deepwide.fitting.regression import Noise
from deepwide.fitting.runs import Counting, Runs, Terms, Unit
from deepwide.fitting.tables import read_runs
from deepwide.laws import TransitionLaw

Kind = Literal["joint", "transition", "ridge", "surface"]
SETTINGS: Mapping[Kind, tuple[str, ...]] = {  # those that not every kind has
    "joint": ("length", "all_runs"),
    "transition": ("slope", "pairs", "noise"),
    "ridge": ("base", "embeddings", "drift", "noise"),
    "surface": ("terms", "unit", "delta"),
}


def fit(
    runs: Any,
    kind: Kind | None = None,
    *,
    columns: Mapping[str, str | None] | None = None,
    where: Mapping[str, float | str] | None = None,
    limits: Iterable[Limit] = (),
    embedding_rows: float | None = None,
    best_of: Iterable[str] = (),
    counting: Counting | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
    length: float | None = None,
    all_runs: bool = False,
    noise: Noise | None = None,
    slope: float | None = None,
    pairs: tuple[tuple[int, int], ...] = (),
    base: str | TransitionLaw | None = None,
    embeddings: bool = False,
    drift: bool = False,
    terms: Terms | None = None,
    unit: Unit | None = None,
    delta: float | None = None,
) -> Fit:
    """Fit a law to runs: the best depth at any size (joint), where deeper starts to win (transition), the best depth
    about a law (ridge), or the loss (surface).

    `runs` is a `Runs`, a folder of runs, a table (.csv, .tsv, .json, .jsonl, .parquet), several of these, a Polars or
    pandas data frame, or a list of dicts. `columns`, `where`, `limits`, `embedding_rows` and
    `best_of` are those of `read_runs`.
    `counting` measures sizes by block or total parameters (default: total for a surface, else block); `bootstrap` is
    the number of resamples (of a joint fit, of draws) and `seed` theirs. The other settings belong to one kind, which
    they choose where none is named: see `fit_joint`, `fit_transition`, `fit_ridge` and `fit_surface`.

    >>> rows = [{"depth": d, "width": w, "loss": 2 - d * w**0.1 / 9} for d in (1, 2) for w in (8, 16, 32)]
    >>> fit(rows, "transition", bootstrap=0).verdict().outcome
    'not seen'
    """
    needs("scipy", "fit")
    given: dict[str, Any] = {
        "length": length, "all_runs": all_runs, "noise": noise, "slope": slope, "pairs": pairs, "base": base,
        "embeddings": embeddings, "drift": drift, "terms": terms, "unit": unit, "delta": delta,
    }  # fmt: skip
    table: dict[str, Any] = {
        "columns": columns, "where": where, "limits": limits, "embedding_rows": embedding_rows, "best_of": best_of,
    }  # fmt: skip
    check_arguments(kind=kind, counting=counting, **given, **table)
    if kind is not None and kind not in SETTINGS:
        raise DeepwideError(f"no kind of fit '{str(kind)[:40]}': {did_you_mean(str(kind), SETTINGS)}")
    settings = {name: value for name, value in given.items() if value not in (None, ()) and value is not False}
    kind = kind or _kind_with(settings)
    for name in settings:
        if name not in SETTINGS[kind]:
            owners = " or ".join(owner for owner, names in SETTINGS.items() if name in names)
            raise DeepwideError(f"the setting '{name}' belongs to a {owners} fit; this is a {kind} fit.")
    if not isinstance(runs, Runs):
        runs = read_runs(runs, **table)
    elif embedding_rows is not None or any(table.values()):
        raise DeepwideError(
            "columns, where, limits, embedding_rows and best_of belong to a table: give them to read_runs."
        )
    if len(runs) > 1 and not runs.diverged.any() and runs.loss.min() == runs.loss.max():
        raise DeepwideError(
            f"all {len(runs)} losses are {runs.loss[0]:g}, so nothing can be fitted: check which column is the loss."
        )
    settings |= {"counting": counting or ("total" if kind == "surface" else "block")}
    settings |= {"bootstrap": bootstrap, "seed": seed}
    answer: Fit = getattr(_module(kind), f"fit_{kind}")(runs, **settings)
    return answer


def _module(kind: str) -> ModuleType:
    return import_module(f"deepwide.fitting.{kind}")


def _kind_with(settings: Iterable[str]) -> Kind:
    """The first kind that has all these settings; without any the joint fit."""
    able = (kind for kind, names in SETTINGS.items() if set(settings) <= set(names))
    return next(able, "joint")


def load_fit(path: str | Path) -> Fit:
    """A fit that `Fit.save` (or `deepwide fit`) wrote."""
    path = Path(path)
    document = read_json(path, "a fit")
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DeepwideError(f'{path} is not a fit: it must be an object with "format": "{FORMAT}".')
    content = document.get("fit")
    kind: Any = content.get("kind") if isinstance(content, dict) else None
    if not isinstance(kind, str) or kind not in SETTINGS:
        raise DeepwideError(f"{path} is not a fit deepwide can read: its kind must be one of {', '.join(SETTINGS)}.")
    try:
        loaded: Fit = getattr(_module(kind), f"{kind.title()}Fit").model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(step) for step in first["loc"])[:80] or "fit"
        reason = " ".join(first["msg"].split())[:160].rstrip(".")
        raise DeepwideError(f"{path} is not a fit deepwide can read: {where}: {reason}.") from None
    return loaded
