"""The command line: one module per group of verbs, one place where errors become sentences."""

import errno
import os
import sys

from deepwide.errors import DeepwideError


def main() -> None:
    """Run `deepwide`; exit 0 when fine, 1 when a cell of a sweep failed, 2 on bad input, 130 when interrupted."""
    try:  # around the imports too: they take most of the time of a short command
        code = _run()
        sys.stdout.flush()
    except DeepwideError as error:
        from deepwide.cli.app import with_remedies

        code = _fail(with_remedies(error))
    except ModuleNotFoundError as error:
        from deepwide.errors import MissingExtraError, explain

        explained = explain(error)
        if not isinstance(explained, MissingExtraError):
            raise
        code = _fail(str(explained))
    except MemoryError:
        code = _fail("There is not enough memory for this; ask for something smaller.")
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        # `deepwide models | head`: the reader left; say nothing more, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:
        if error.errno == errno.ENOSPC:
            code = _fail("the disk is full: free some room and give the same command again.")
        else:
            where = f" {error.filename}:" if error.filename else ""
            code = _fail(f"Cannot use the file system:{where} {error.strerror or error}.")
    if code == 130:
        _say_what_is_left(sys.argv[1:])
    sys.exit(code or 0)


def _run() -> int | None:
    import gc

    gc.disable()  # imports leave no garbage; `load` enables it for the verbs that work for long
    import typer

    from deepwide.cli.app import app, load, write_what_can_be_encoded

    write_what_can_be_encoded()
    load(*sys.argv[1:])
    try:
        code: int | None = app(standalone_mode=False)
        return code
    except typer.Abort:
        return 130
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # typer has caught it and would exit with 1
            raise error.__context__ from None
        raise
    except typer.TyperException as error:
        message = getattr(error, "format_message", error.__str__)()
        if not message:  # plain `deepwide`: its help has been shown
            return 2
        if message[:17] == "No such option: -" and message[17:18].isdigit():
            message = "A negative number is read as an option, and no argument may be negative"
        return _fail(f"{message if message.endswith(('.', '?')) else message + '.'} See: {_help_command(message)}")


def _fail(sentence: str) -> int:
    from deepwide.cli.app import visible

    print(f"deepwide: {visible(' '.join(sentence.split()))}", file=sys.stderr)
    return 2


def _say_what_is_left(words: list[str]) -> None:
    """What an interrupted command leaves behind, for verbs that do not say so themselves."""
    if words[:1] == ["fit"]:
        _fail("Interrupted: nothing was saved.")
    elif words[:1] == ["rank"]:
        saves = any(word.partition("=")[0] == "--out" for word in words)
        _fail(
            "Interrupted: certificates and blocks that were finished are saved; the same command resumes."
            if saves
            else "Interrupted: nothing was saved; with --out FOLDER finished blocks are."
        )


def _help_command(message: str) -> str:
    """The help that fits a mistake: of the command that was named, or of the group that does not have it."""
    import itertools
    import re

    from deepwide.cli.app import app

    words = list(itertools.takewhile(re.compile("[a-z][a-z-]*").fullmatch, sys.argv[1:3]))
    groups = {group.name for group in app.registered_groups}
    verb = words[: 2 if words and words[0] in groups else 1]
    if "No such command" in message:
        verb = verb[:-1]
    return " ".join(["deepwide", *verb, "--help"])
