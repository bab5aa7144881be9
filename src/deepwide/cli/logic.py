"""`deepwide logic`: can hard attention recognise this language, and how deep must it be?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.markup import escape
from rich.table import Table

from deepwide.cli.app import Json, app, console, print_json
from deepwide.errors import DeepwideError
from deepwide.quantities import plural

if TYPE_CHECKING:
    from deepwide.logic import Language, RankAnswer

_EXAMPLE = """
Examples: [bold]deepwide logic "P(a & (c S< a))" --word bacca[/bold] (a formula; S< is since, P once),
[bold]deepwide logic "/(ab)*/"[/bold] (a regular expression),
[bold]deepwide logic "P := rightmost\\[j<i, Q_a] 1 : 0"[/bold] (B-RASP; lines may be separated by ;).
"""
LINES = 12  # of a program that is shown


@app.command(epilog=_EXAMPLE)
def logic(
    language: Annotated[
        str, typer.Argument(help="A formula, a regular expression between slashes, a B-RASP program, or a file of one.")
    ],
    alphabet: Annotated[
        str | None, typer.Option(help="The letters, such as abc (default: those in the language and the word).")
    ] = None,
    word: Annotated[str | None, typer.Option(help="Show answers and attention on this word.")] = None,
    at: Annotated[
        Literal["first", "last"] | None, typer.Option(help="Where a formula is read (default: last, for future first).")
    ] = None,
    search: Annotated[bool, typer.Option("--search/--no-search", help="Search for the least depth.")] = True,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="LANGUAGE and --word are two words: which quantifier rank tells them apart?"),
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="With --word: draw where the heads look: a .svg, .png, .pdf, .html or .json file."
        ),
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Save the compiled network: config.json, model.safetensors.")
    ] = None,
    json: Json = False,
) -> None:
    """Can a transformer with hard attention recognise this language, and how deep must it be?"""
    from deepwide.logic import analyse_language, counting_rank, save_network

    if compare:
        if word is None:
            raise DeepwideError("--compare needs a second word: add --word.")
        ranks = counting_rank(language, word)
        print_json(ranks) if json else _show_ranks(ranks)
        return
    if plot:
        from deepwide.figures import check_suffix

        check_suffix(plot)
        if word is None:
            raise DeepwideError("--plot shows attention on a word, so it needs --word.")
    text = _text(language)
    answer = analyse_language(text, alphabet=alphabet, word=word, at=at, search=search)
    if plot:
        from deepwide.figures import look_chart, save_chart

        if not answer.looks:
            raise DeepwideError("there is no network whose attention could be drawn: leave --plot out to see why.")
        save_chart(look_chart(answer), plot)
    if save:
        save_network(answer, save)
    if json:
        print_json(answer)
        return
    _show(answer)
    for what, path in (("Picture", plot), ("Network", save)):
        if path:
            console().print(f"{what}: {path}", soft_wrap=True)


def _text(language: str) -> str:
    """What a file says, if there is one of that name."""
    if language.endswith((".brasp", ".ltl", ".txt")):
        try:
            return Path(language).read_text(encoding="utf-8")
        except OSError as error:
            raise DeepwideError(f"cannot read {language}: {error.strerror}.") from None
    if len(language) < 200 and Path(language).exists():
        raise DeepwideError(f"{language} is a file or folder, but none that ends in .ltl, .brasp or .txt.")
    return language


def _show(answer: "Language") -> None:
    to = console()
    facts = Table.grid(padding=(0, 2))
    facts.add_column(no_wrap=True)
    facts.add_column()
    if answer.formula is not None:
        read = f"depth {answer.formula_depth}, read at the {answer.at} position, alphabet {answer.alphabet}"
        facts.add_row("formula", escape(answer.formula))
        facts.add_row("", read)
    elif answer.formula_depth is not None:
        facts.add_row("formula", f"depth {answer.formula_depth}, read at the {answer.at} position, too long to show")
    if answer.states is not None:
        monoid = "" if answer.monoid is None else f", syntactic monoid of {plural(answer.monoid, 'element')}"
        facts.add_row("automaton", f"{plural(answer.states, 'state')}{monoid}")
    if answer.star_free is not None:
        never = f"no: the powers of {answer.period} never settle, so masked hard attention of no depth recognises it"
        yes = "yes: masked hard attention recognises it" if answer.star_free else never
        facts.add_row("star-free", yes)
    if answer.shape is not None:
        s = answer.shape
        shape = f"{plural(s.depth, 'layer')} × {s.width} wide, {plural(s.heads, 'head')} of {s.head_dim}, "
        shape += f"feed-forward of {s.ff_width}, {s.total_params:,} parameters"
        facts.add_row("network", shape)
    to.print(facts)
    if answer.program is not None:
        lines = answer.program.splitlines()
        to.print(f"\nProgram of depth {answer.program_depth}")
        for line in lines[:LINES]:
            to.print(f"  {escape(line)}", soft_wrap=True)
        if len(lines) > LINES:
            to.print(f"  and {len(lines) - LINES} more lines: --json has them all")
    if answer.least:
        _show_least(answer)
    if answer.word is not None:
        _show_word(answer)
    for note in answer.notes:
        to.print(f"Note: {escape(str(note)).removesuffix('.')}.", style="dim")


def _show_least(answer: "Language") -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    console().print("\nLeast depth of a formula")
    for column in ("operators", "least depth", "too shallow: no formula of depth n tells these apart"):
        table.add_column(column)
    names = {"past": "past, read at the last", "future": "future, read at the first", "both": "both, read at the last"}
    for each in answer.least:
        high = "unknown" if each.high is None else str(each.high)
        depth = high if each.exact else f"at least {each.low}" if each.high is None else f"{each.low} to {each.high}"
        last = max(each.pairs, key=lambda pair: pair.depth, default=None)
        proof = "–" if last is None else f"n = {last.depth}: {last.inside} (in) and {last.outside} (out)"
        table.add_row(names[each.direction], depth, proof)
    console().print(table)


def _show_word(answer: "Language") -> None:
    to = console()
    verdicts = ", ".join(f"{who} {'yes' if what else 'no'}" for who, what in answer.answers.items())
    to.print(f"\nOn {answer.word}: {verdicts}")
    if answer.word is None or not answer.looks or len(answer.word) > 30:
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("layer", "head looks", "for", *answer.word):
        table.add_column(column)
    for each in answer.looks:
        places = ["·" if place is None else str(place + 1) for place in each.positions]
        table.add_row(str(each.layer), escape(each.look), escape(", ".join(each.vectors)), *places)
    to.print(table)
    to.print("[dim]Each position takes its value from the position with this number; ·: it may look nowhere.[/dim]")


def _show_ranks(answer: "RankAnswer") -> None:
    to = console()
    if answer.one == answer.two:
        to.print(f"{answer.one} is given twice: nothing tells a word from itself")
        return
    for row in answer.rows():
        rank = f"rank {row['rank']}" if row["rank"] is not None else f"no rank up to {row['searched']}"
        to.print(f"{row['logic']} logic with order: {rank} tells {answer.one} and {answer.two} apart")
