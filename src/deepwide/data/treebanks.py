"""Annotated text: dependencies and mentions from CoNLL-U (Universal Dependencies, GUM), pronouns and names from GAP.

Words are counted from 0. A multiword token (`3-4  don't`) and an empty node (`5.1`) have no line of their own here:
their parts, and the words around them, do.
"""

import re
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from deepwide.data.sources import LONGEST_ROW, limited_lines
from deepwide.errors import DeepwideError

ROOT = -1  # the head of a sentence's root
LARGEST_MEMBER = 64 << 20  # bytes of one file in an archive
WORD = re.compile(r"\w+|[^\w\s]")
ENTITY = re.compile(r"\((?P<opened>[^-()]+)(?:-[^()]*)?(?P<closed>\))?|(?P<ended>[^()]+)\)")
GAP_COLUMNS = ("Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref", "B", "B-offset", "B-coref")


@dataclass(frozen=True)
class Mention:
    """Words first … last of a sentence that name an entity, and the word that heads them."""

    entity: str
    first: int
    last: int
    head: int


@dataclass(frozen=True)
class Sentence:
    """Words with their heads and relations; `document` is the name of the text it belongs to."""

    words: tuple[str, ...]
    heads: tuple[int, ...]  # of each word: another word, or ROOT
    relations: tuple[str, ...]
    tags: tuple[str, ...]  # universal parts of speech
    mentions: tuple[Mention, ...] = ()
    document: str = ""


@dataclass(frozen=True)
class GapExample:
    """A text in words with a pronoun and two names, of which one may be who the pronoun means."""

    words: tuple[str, ...]
    pronoun: int
    names: tuple[tuple[int, ...], tuple[int, ...]]  # the words of each
    meant: tuple[bool, bool]


def read_conllu(path: str | Path, within: str = "") -> Iterator[Sentence]:
    """The sentences of a .conllu file (.gz too), of all such files in a .tar archive, or of those in a folder.

    `within` is a folder of the archive: GUM's has each text twice, with its own mentions in `dep`.
    """
    path = Path(path)
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if re.search(r"\.conllu(\.gz)?$", file.name))
        if not files:
            raise DeepwideError(f"the folder {path} holds no .conllu files.")
        for file in files:
            yield from read_conllu(file)
    elif re.search(r"\.(tar|tgz|tar\.(gz|xz|bz2))$", path.name):
        yield from _from_archive(path, within)
    elif path.is_file():
        yield from _sentences(limited_lines(path), str(path))
    else:
        raise DeepwideError(f"there is no file or folder {path}: give a .conllu file, or a folder or .tar of them.")


def read_gap(path: str | Path) -> Iterator[GapExample]:
    """The examples of a file of GAP (Webster et al. 2018), a .tsv with names of columns."""
    path = Path(path)
    if not path.is_file():
        raise DeepwideError(f"there is no file {path}: give a .tsv file of GAP.")
    lines = (line.decode("utf-8", "replace").rstrip("\r\n") for line in limited_lines(path))
    names = next(lines, "").split("\t")
    if missing := [name for name in GAP_COLUMNS if name not in names]:
        raise DeepwideError(f"{path} is not a file of GAP: its first line does not name the column '{missing[0]}'.")
    for number, line in enumerate(lines, 2):
        row = dict(zip(names, line.split("\t"), strict=False))
        try:
            yield _example(row)
        except (KeyError, ValueError, IndexError):
            raise DeepwideError(f"line {number} of {path} is not an example of GAP.") from None


def _example(row: dict[str, str]) -> GapExample:
    spans = [match.span() for match in WORD.finditer(row["Text"])]

    def within(text: str, offset: str) -> tuple[int, ...]:
        start, end = int(offset), int(offset) + len(text)
        inside = tuple(place for place, (a, b) in enumerate(spans) if a < end and start < b)
        if not inside or start < 0:
            raise ValueError("no words there")
        return inside

    return GapExample(
        words=tuple(row["Text"][a:b] for a, b in spans),
        pronoun=within(row["Pronoun"], row["Pronoun-offset"])[0],
        names=(within(row["A"], row["A-offset"]), within(row["B"], row["B-offset"])),
        meant=(row["A-coref"].upper() == "TRUE", row["B-coref"].upper() == "TRUE"),
    )


def _from_archive(path: Path, within: str) -> Iterator[Sentence]:
    prefix = f"{within}/" if within else ""
    try:
        with tarfile.open(path) as archive:
            members = [member for member in archive.getmembers() if member.isfile()]
            for member in sorted(members, key=lambda member: member.name):
                if not member.name.endswith(".conllu") or not member.name.removeprefix("./").startswith(prefix):
                    continue
                if member.size > LARGEST_MEMBER:
                    raise DeepwideError(f"{member.name} in {path} is larger than {LARGEST_MEMBER >> 20} MiB.")
                file = archive.extractfile(member)
                assert file is not None
                yield from _sentences(file.readlines(), f"{member.name} in {path}")
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DeepwideError(f"{path} is damaged or missing: {error}.") from None


def _sentences(lines: Iterable[bytes], where: str) -> Iterator[Sentence]:
    document, rows, start = "", list[list[str]](), 1
    for number, line in enumerate(lines, 1):
        if len(line) >= LONGEST_ROW:
            raise DeepwideError(f"line {number} of {where} is longer than {LONGEST_ROW >> 20} MiB.")
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if text.startswith("#"):
            name, _, value = text[1:].partition("=")
            document = value.strip() if name.strip() == "newdoc id" else document
        elif text.strip():
            start = start if rows else number
            rows.append(text.split("\t"))
        elif rows:
            yield _sentence(rows, document, f"lines {start} to {number - 1} of {where}")
            rows = []
    if rows:
        yield _sentence(rows, document, f"the last sentence of {where}")


def _sentence(rows: list[list[str]], document: str, where: str) -> Sentence:
    words = [row for row in rows if row[0].isdecimal()]
    if any(len(row) != 10 for row in rows) or [row[0] for row in words] != [str(n + 1) for n in range(len(words))]:
        raise DeepwideError(f"{where} are not CoNLL-U: ten columns with tabs between, words numbered from 1.")
    if not all(row[6].isdecimal() and int(row[6]) <= len(words) and row[6] != row[0] for row in words):
        raise DeepwideError(f"{where} have a word whose head is not another word of the sentence, or 0.")
    heads = tuple(int(row[6]) - 1 for row in words)
    return Sentence(
        words=tuple(row[1] for row in words),
        heads=heads,
        relations=tuple(row[7] for row in words),
        tags=tuple(row[3] for row in words),
        mentions=_mentions([_entity(row[9]) for row in words], heads, where),
        document=document,
    )


def _entity(miscellaneous: str) -> str:
    return next((part[7:] for part in miscellaneous.split("|") if part.startswith("Entity=")), "")


def _mentions(marks: list[str], heads: tuple[int, ...], where: str) -> tuple[Mention, ...]:
    """Mentions from GUM's brackets: `(7-person-…` opens entity 7, `7)` ends the one opened last, `(7-…)` does both."""
    opened: dict[str, list[int]] = {}
    mentions = []
    for place, mark in enumerate(marks):
        for match in ENTITY.finditer(mark):
            if match["opened"] is not None and match["closed"] is None:
                opened.setdefault(match["opened"].partition("[")[0], []).append(place)
                continue
            entity = (match["opened"] or match["ended"]).partition("[")[0]
            if match["opened"] is None and not opened.get(entity):
                raise DeepwideError(f"{where} end a mention of entity '{entity[:40]}' that was never opened.")
            first = place if match["opened"] is not None else opened[entity].pop()
            mentions.append(Mention(entity, first, place, _head_of(first, place, heads)))
    return tuple(sorted(mentions, key=lambda mention: (mention.first, mention.last)))


def _head_of(first: int, last: int, heads: tuple[int, ...]) -> int:
    """The word of a span whose own head lies outside it; of several, the first."""
    return next((place for place in range(first, last + 1) if not first <= heads[place] <= last), last)
