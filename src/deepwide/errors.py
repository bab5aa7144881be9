"""The one exception a user is meant to see, and how to name what they probably meant."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from numbers import Integral


class DeepwideError(ValueError):
    """Bad input: one sentence that says what is wrong, what is allowed and what to do next.

    `remedies` names what would help (an argument, a setting), for the command line to say how it calls it.
    """

    def __init__(self, sentence: str = "", *, remedies: Iterable[str] = ()) -> None:
        super().__init__(sentence)
        self.remedies = tuple(remedies)


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
