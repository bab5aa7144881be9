"""The Typer application and what every verb shares: `--json`, the console, what may be written to a stream."""

import codecs
import gc
import io
import json
import math
import os
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import IO, Annotated, Any, cast

import typer
from rich.console import Console
from rich.errors import MarkupError
from rich.text import Text

from deepwide.errors import DeepwideError

app = typer.Typer(
    name="deepwide",
    help="How deep and how wide should a transformer be, and how do you know?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="Exit codes: 0 fine, 1 a sweep's cell failed, 2 bad input (one sentence on stderr), 130 interrupted.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Plot = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Save the picture: .svg, .png, .pdf, .html or .json (Vega-Lite)."),
]


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


ARGUMENT = re.compile(r"(?<![\w'\"/.-])[a-z]+(?:_[a-z]+)+(?![\w'\"/(-]|\.\w)|^[a-z]+(?=: input should be)")
REMEDIES = {"loss_column": "--column loss=NAME", "ridge": "--kind ridge --base power", "kind": "--flops or --memory"}


def with_remedies(error: DeepwideError) -> str:
    """An error's sentence, with arguments called as the command line calls them, and what would help."""
    if error.remedies == ("catalogue",):
        return f"{error} See: deepwide models."
    command: Any = typer.main.get_command(app)
    for word in sys.argv[1:3]:
        command = getattr(command, "commands", {}).get(word, command)
    known = {option for parameter in command.params for option in parameter.opts}

    def as_option(name: re.Match[str]) -> str:
        option = f"--{name[0].replace('_', '-')}"
        return option if option in known and name[0] not in error.remedies else name[0]

    sentence = ARGUMENT.sub(as_option, str(error))
    if "--column" in known:
        sentence = sentence.replace("(column ", "(--column ")
    options = [REMEDIES.get(name, f"--{name.replace('_', '-')}") for name in error.remedies]
    usable = " and ".join(option for option in options if option.split()[0] in known)
    return f"{sentence} Add {usable}." if usable else sentence


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


class _Plain(io.TextIOBase):
    """Standard output without the spaces that pad tables, and without control characters."""

    def write(self, text: str) -> int:
        return sys.stdout.write(visible(re.sub(r" +$", "", text, flags=re.MULTILINE)))

    def flush(self) -> None:
        sys.stdout.flush()


class _Console(Console):
    def render_str(self, text: str, **settings: Any) -> Text:
        """Names in files are other people's: they neither steer the terminal nor break the markup."""
        try:
            return super().render_str(visible(text), **settings)
        except MarkupError:
            return Text(visible(text))

    def on_broken_pipe(self) -> None:
        """Leave it to `main`, which ends quietly."""
        raise BrokenPipeError


def console() -> Console:
    """Where tables go: as wide as the terminal, or 110 columns of plain text into a file or a pipe."""
    if sys.stdout.isatty():
        return _Console(highlight=False)
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() and int(columns) else 110
    return _Console(highlight=False, file=cast(IO[str], _Plain()), width=width)


def print_json(value: Any) -> None:
    """One JSON document on standard output; pydantic models dump themselves, and what is infinite is null."""
    plain = _finite(value.model_dump(mode="json") if hasattr(value, "model_dump") else value)
    ascii_only = (sys.stdout.encoding or "utf-8").lower().replace("-", "") != "utf8"  # elsewhere escapes lose nothing
    print(json.dumps(plain, indent=2, ensure_ascii=ascii_only))


def _finite(value: Any) -> Any:
    """JSON has no infinity and no NaN."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _version(asked: bool) -> None:
    if asked:
        from deepwide import __version__

        print(f"deepwide {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


# A module registers its verbs on `app` when it is imported: only the one a command needs, so that `plan` stays quick.
HOME = {
    "plan": "planner",
    "audit": "planner",
    "count": "planner",
    "models": "planner",
    "laws": "planner",
    "time": "timing",
    "page": "page",
    "bounds": "separation",
    "rank": "rank",
    "train": "train",
    "check-scaling": "train",
    "translate": "translate",
    "sweep": "design",  # which loads the other verbs of a sweep
    "worker": "sweep",
    "fit": "fit",
    "evidence": "evidence",
    "study": "study",
    "logic": "logic",
    "report": "report",
    "serve": "serve",
    "tour": "tour",
}


def load(*words: str) -> None:
    """Register the module of the verb that is called, or every module when there is no such verb (help, a mistake)."""
    verb = words[0] if words else ""
    if HOME.get(verb) == "planner":  # these answer at once: no threads for numpy, no garbage to collect
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    else:
        gc.enable()
    home = HOME | {"sweep": "sweep"} if words[:2] == ("sweep", "run") else HOME  # a driver designs nothing
    for module in (home[verb],) if verb in home else dict.fromkeys(home.values()):
        import_module(f"deepwide.cli.{module}")
