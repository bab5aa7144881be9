"""The one exception a user is meant to see: how to name what they probably meant, and what to install if a library that
the core does not have is missing.
"""

import sys
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from importlib.util import find_spec
from numbers import Integral


class DeepwideError(ValueError):
    """Bad input: one sentence that says what is wrong, what is allowed and what to do next.

    `remedies` names what would help (an argument, a setting), for the command line to say how it calls it.
    """

    def __init__(self, sentence: str = "", *, remedies: Iterable[str] = ()) -> None:
        super().__init__(sentence)
        self.remedies = tuple(remedies)


class OutsideError(DeepwideError):
    """What a run needs and does not own is missing or damaged: its data, a cache. Mend that, and the run resumes."""


def did_you_mean(word: str, allowed: Iterable[str], *, most: int = 8, otherwise: str = "") -> str:
    """The end of an error sentence, its point included: the nearest valid names, or `otherwise`, or the first names.

    >>> did_you_mean("lama", ["llama", "gpt2"])
    "did you mean 'llama'?"
    >>> did_you_mean("xyz", ["llama", "gpt2"])
    "it must be one of 'gpt2', 'llama'."
    """
    names = sorted(allowed)
    near = get_close_matches(word.lower(), names, n=3, cutoff=0.6)
    if near:
        return "did you mean " + " or ".join(f"'{name}'" for name in near) + "?"
    if otherwise:
        return otherwise
    shown = ", ".join(f"'{name}'" for name in names[:most])
    return f"it must be one of {shown}" + (f" and {len(names) - most} more." if len(names) > most else ".")


def at_least_one(**counts: int | None) -> None:
    """Refuse a batch of 0, of "a" or of 1.5, or a sequence of −1; None stands for a default."""
    for name, count in counts.items():
        if count is None:
            continue
        if isinstance(count, bool) or not isinstance(count, Integral):
            raise DeepwideError(f"{name} must be a whole number, not {quoted(count)}.")
        if count < 1:
            raise DeepwideError(f"{name} must be at least 1, not {quoted(count)}.")


def from_one_to(most: int, /, **counts: int | None) -> None:
    """`at_least_one`, and refuse what is beyond any use, such as a batch of 1e30."""
    at_least_one(**counts)
    for name, count in counts.items():
        if count is not None and count > most:
            raise DeepwideError(f"{name} must be at most {most:,}, not {quoted(count)}.")


def one_line(text: str) -> str:
    """A message on one line whatever names it quotes: what does not print is escaped.

    >>> one_line("no setting 'a\\nb\\x1b[0m'")
    "no setting 'a\\\\nb\\\\x1b[0m'"
    """
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def quoted(value: object, most: int = 40) -> str:
    """A bad value as a sentence quotes it: short, and safe to show however deep or large it is.

    >>> quoted("x" * 99, most=3), quoted([[[]]]), quoted(-5), quoted(10**5000)
    ("'xxx'", 'a list', "'-5'", 'a number of thousands of digits')
    """
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, int) and value.bit_length() > 4000:  # Python refuses to print one of 4300 digits
        return "a number of thousands of digits"
    return repr(str(value)[:most])


# As in pyproject.toml, by the name under which a library is imported.
EXTRAS = {
    "plot": ("altair", "vl_convert"),
    "rank": ("flint", "scipy", "threadpoolctl"),
    "fit": ("scipy", "polars", "threadpoolctl"),
    "train": ("torch", "safetensors", "tokenizers", "pooch", "polars"),
    "translate": ("sacrebleu",),
    "ray": ("ray",),
    "tracking": ("tensorboard", "wandb", "mlflow"),
    "hub": ("datasets",),
    "serve": ("fastapi", "uvicorn"),
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
