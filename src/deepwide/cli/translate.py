"""`deepwide translate`: texts through a trained run, and BLEU."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deepwide.cli.app import Json, app, console, print_json
from deepwide.errors import DeepwideError

if TYPE_CHECKING:
    from deepwide.answers import Interval

MOST_BYTES = 1 << 28  # of a file of texts, which are held in memory


@app.command(
    epilog="Examples: deepwide translate runs/ID test.en --references test.af --out test.out · echo 'Good morning.' | "
    "deepwide translate runs/ID"
)
def translate(
    run: Annotated[Path, typer.Argument(help="Folder of a run of the task translation.")],
    texts: Annotated[
        Path | None, typer.Argument(help="A file with one text per line (default: standard input).")
    ] = None,
    beam: Annotated[int, typer.Option(min=1, max=1000, help="Sequences searched at a time; 1 is greedy.")] = 5,
    alpha: Annotated[
        float, typer.Option(min=0, max=10, help="Weight of length: log p / ((5 + length) / 6)^alpha.")
    ] = 1.0,
    references: Annotated[Path | None, typer.Option(help="Right translations, one per line: prints BLEU.")] = None,
    against: Annotated[Path | None, typer.Option(help="Another run: prints the difference of BLEU.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the translations to a file, one per line.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1 or auto.")] = "auto",
    json: Json = False,
) -> None:
    """Translate texts with a trained run; with references, measure BLEU (sacrebleu) with bootstrap intervals."""
    from deepwide.files import write_text
    from deepwide.training import translate as translate_texts

    lines = _lines(texts) if texts else [line.rstrip("\r\n") for line in sys.stdin]
    answer = translate_texts(
        run, lines, beam=beam, alpha=alpha, references=_lines(references) if references else None, against=against,
        device=device,
    )  # fmt: skip
    if out:
        write_text(out, "".join(f"{' '.join(text.split())}\n" for text in answer.translations))
    if json:
        print_json(answer)
        return
    for note in answer.notes:
        print(f"{note.text[:1].upper()}{note.text[1:]}", file=sys.stderr)
    to = console()
    if not out:
        for text in answer.translations:
            to.print(" ".join(text.split()), markup=False, soft_wrap=True)
    if answer.bleu is not None:
        score = answer.bleu
        to.print(f"BLEU {_shown(score.bleu)} on {score.sentences:,} texts ({score.signature}).", markup=False)
        if score.against is not None and score.difference is not None:
            to.print(f"The other run: {_shown(score.against)}; difference {_shown(score.difference)}.", markup=False)


def _shown(interval: "Interval") -> str:
    return f"{interval.value:.2f} (95%: {interval.low:.2f} to {interval.high:.2f})"


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise DeepwideError(f"There is no file {path}.")
    if path.stat().st_size > MOST_BYTES:
        raise DeepwideError(f"{path} is larger than {MOST_BYTES >> 20} MiB: translate it in parts.")
    return path.read_text(encoding="utf-8", errors="replace").removesuffix("\n").split("\n")
