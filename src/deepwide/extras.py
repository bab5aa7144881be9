"""What is not installed with the core: which extra has it, and the sentence that says how to get it."""

import sys
from importlib.util import find_spec

from deepwide.errors import DeepwideError

# As in pyproject.toml, by the name under which a library is imported.
EXTRAS = {
    "plot": ("altair", "vl_convert"),
    "rank": ("flint", "scipy"),
    "fit": ("scipy", "polars"),
    "train": ("torch", "safetensors", "tokenizers", "pooch", "polars"),
    "ray": ("ray",),
    "tracking": ("tensorboard", "wandb", "mlflow"),
    "hub": ("datasets",),
}


class MissingExtraError(DeepwideError, ImportError):
    """A library is not installed; the sentence names the extra that has it."""


def needs(module: str, extra: str) -> None:
    """Refuse to begin what cannot be finished: the module must be installed, and the extra is where it comes from."""
    if not is_installed(module):
        raise MissingExtraError(missing(module, extra))


def is_installed(module: str) -> bool:
    """Whether a top-level module can be imported, without importing it."""
    if module in sys.modules:
        return sys.modules[module] is not None
    try:
        return find_spec(module) is not None
    except ImportError:  # an import hook refuses it
        return False


def explain(error: ModuleNotFoundError) -> ImportError:
    """The error to raise instead: with the extra, if a library is missing; itself, if a module of ours is."""
    name = (error.name or "").partition(".")[0]
    return error if name in ("", "deepwide") else MissingExtraError(missing(name))


def missing(module: str, extra: str | None = None) -> str:
    """The sentence about a module that is not installed.

    >>> missing("altair", "plot")
    "This needs altair, which is not installed: pip install 'deepwide[plot]' (in a clone: '.[plot]')."
    >>> missing("flint")
    "This needs flint, which is not installed: pip install 'deepwide[rank]' (in a clone: '.[rank]')."
    """
    extras = [extra] if extra else [name for name, modules in EXTRAS.items() if module in modules]
    return f"This needs {module}, which is not installed: {install(*extras) if extras else f'pip install {module}'}."


def install(*extras: str) -> str:
    """The command that adds one of the extras: to what is installed already, or from the source.

    >>> install("rank", "fit")
    "pip install 'deepwide[rank]' or 'deepwide[fit]' (in a clone: '.[rank]' or '.[fit]')"
    """
    here, clone = (" or ".join(f"'{package}[{extra}]'" for extra in extras) for package in ("deepwide", "."))
    return f"pip install {here} (in a clone: {clone})"
