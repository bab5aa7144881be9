"""What may be written to a terminal or a file: only what it can encode, and no control characters from elsewhere."""

import codecs
import re
import sys

# How to write what our tables and sentences use where an encoding (Windows' cp1252, plain ASCII) does not have it.
PLAIN = {
    "×": "x", "·": "*", "–": "-", "—": "-", "−": "-", "─": "-", "│": "|", "…": "...", "±": "+-", "≈": "~", "≥": ">=",
    "≤": "<=", "→": "->", "←": "<-", "⇄": "<->", "√": "sqrt ", "Σ": "sum ", "²": "^2", "³": "^3", "“": '"', "”": '"',
    "‘": "'", "’": "'", "°": " deg", "µ": "u",
}  # fmt: skip
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # C0 and C1 without tab and newline


def visible(text: str) -> str:
    """The text with control characters replaced, so that a file's name or content cannot steer a terminal."""
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def write_what_can_be_encoded() -> None:
    """From now on a character that standard output cannot encode is written in plain letters instead of failing."""
    codecs.register_error("deepwide.plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)  # streams of tests and notebooks have none
        if reconfigure is not None and stream.errors in ("strict", "backslashreplace"):
            reconfigure(errors="deepwide.plain")


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(PLAIN.get(character, "?") for character in text), error.end
