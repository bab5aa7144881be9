"""Ways to damage an input, seeded: bytes, JSON values, lines of text, files of a folder.

What is put in is what strangers, disks and tired people put in: wrong types, numbers that no float holds, text that
steers terminals and pages, nesting without end, paths that are no files, halves and doubles of everything.
"""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

TEXTS = (
    "", " ", "x" * 5000, "\x1b[31mred", "[/x]", "[link=file:///etc]a[/link]", "</script><script>alert(1)</script>",
    "a\0b", "\u202eabc", "'; --", "1e999", "nan", "-0", "1_000", "../..", "/dev/zero", "/dev/stdin", "s3://bucket/x",
    "hf:owner/name", "a" * 300 + ".json", "levine", "%s%n", "{0.__class__}", "\ud800", "🙂",
)  # fmt: skip
NUMBERS = (
    0, -1, 1, 2, 3, 7, 255, 10**9, 2**31, 2**53 + 1, 2**63, -(2**64), 10**30, 10**400, 0.0, -0.0, 0.5, 1e-320, 1e-30,
    1e30, 1e300, 1e308, -1e308, float("inf"), float("nan"),
)  # fmt: skip
BYTES = (
    b"", b"\0", b"\xff\xfe", b"\x1b[2J", b"\n\n", b"1e999", b"NaN", b"-", b"9" * 500, b"[" * 3000, b'{"a":' * 3000,
    b'"' * 3, b"PK\x03\x04", b"\x1f\x8b\x08", b",,,,", b"\r", b"null", b"true", b"\xf0\x9f", b"#", b"=", b"]]",
)  # fmt: skip


def damage_bytes(content: bytes, draw: random.Random) -> bytes:
    """A few small damages: flips, cuts, doubles, insertions, zeros."""
    for _ in range(draw.choice((1, 1, 2, 4, 16))):
        at, length = draw.randrange(len(content) + 1), draw.choice((1, 1, 2, 8, 64, 1024))
        end = min(len(content), at + length)
        kind = draw.randrange(7)
        if kind == 0 and at < len(content):
            content = content[:at] + bytes([content[at] ^ (1 << draw.randrange(8))]) + content[at + 1 :]
        elif kind == 1:
            content = content[:at] + draw.choice(BYTES) + content[at:]
        elif kind == 2:
            content = content[:at] + draw.choice(BYTES) + content[end:]
        elif kind == 3:
            content = content[:at] + content[end:]
        elif kind == 4:
            content = content[:end] + content[at:]
        elif kind == 5:
            content = content[:at] + bytes(end - at) + content[end:]
        else:
            content = content[:at]
    return content


def damage_json(content: bytes, draw: random.Random) -> bytes:
    """One to three values replaced, removed, added or exchanged; now and then bytes."""
    if draw.random() < 0.15:
        return damage_bytes(content, draw)
    document = json.loads(content)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        document = _change(document, draw)
    return json.dumps(document, ensure_ascii=draw.random() < 0.5).encode("utf-8", "surrogatepass")


def _change(document: Any, draw: random.Random) -> Any:
    places = list(_places(document))
    if not places:
        return strange(None, draw)
    holder, key = draw.choice(places)
    kind = draw.randrange(8)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[draw.choice((*TEXTS[:12], "kind", "name", "depth"))] = strange(None, draw)
    elif kind == 2:
        other, name = draw.choice(places)
        if name in other if isinstance(other, dict) else name < len(other):
            holder[key] = json.loads(json.dumps(other[name]))
    elif kind == 3 and isinstance(holder, list):
        holder.extend(holder[: draw.choice((1, 50))])
    else:
        holder[key] = strange(holder[key], draw)
    return document


def _places(document: Any) -> Any:
    if isinstance(document, dict):
        for key, value in document.items():
            yield document, key
            yield from _places(value)
    elif isinstance(document, list):
        for i in range(min(len(document), 50)):
            yield document, i
            yield from _places(document[i])


def strange(value: Any, draw: random.Random) -> Any:
    """Something else in place of a value: near it, or far from anything."""
    kind = draw.randrange(10)
    if kind < 3 and isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
        near = (value + 1, value - 1, -value, 0 * value, 10 * value, value / 7, value * 1e9, value * 1e-9)
        return draw.choice(near)
    if kind < 5:
        return draw.choice(NUMBERS)
    if kind < 7:
        return draw.choice(TEXTS)
    if kind == 7:
        deep: Any = draw.choice(([], {}, 0))
        for _ in range(draw.choice((1, 2, 40, 900))):
            deep = [deep] if draw.random() < 0.5 else {"a": deep}
        return deep
    return draw.choice((None, True, False, [], {}, [value, value], [[]], {"a": value}))


def damage_lines(content: bytes, draw: random.Random, between: str = "=") -> bytes:
    """Lines of settings or of a table: a value replaced, a line lost, doubled or moved; now and then bytes."""
    if draw.random() < 0.2:
        return damage_bytes(content, draw)
    lines = content.decode().split("\n")
    for _ in range(draw.choice((1, 1, 2, 3))):
        i = draw.randrange(len(lines))
        parts = lines[i].split(between)
        kind = draw.randrange(6)
        if kind == 0:
            lines[i : i + 1] = []
        elif kind == 1:
            lines.insert(draw.randrange(len(lines) + 1), lines[i])
        elif kind == 2:
            lines[i] += between + _written(strange(None, draw))
        else:
            parts[draw.randrange(len(parts))] = _written(strange(None, draw))
            lines[i] = between.join(parts)
        lines = lines or [""]
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _written(value: Any) -> str:
    try:
        return json.dumps(value) if not isinstance(value, str) or len(value) % 2 else value
    except ValueError:
        return "0"


def damage_folder(folder: Path, draw: random.Random, others: list[Path]) -> str:
    """One or two files of a folder damaged, lost, exchanged, or made into something that is no file; says which."""
    said = []
    for _ in range(draw.choice((1, 1, 1, 2))):
        files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
        if not files:
            break
        path = draw.choice(files)
        kind = draw.randrange(12)
        said.append(f"{path.relative_to(folder)} {kind}")
        if kind == 0:
            path.unlink()
        elif kind == 1:
            path.unlink()
            path.mkdir()
        elif kind == 2:
            path.unlink()
            path.symlink_to(draw.choice(("/nowhere", "/dev/zero", "..", path.name)))
        elif kind == 3 and path.parent != folder:
            shutil.rmtree(path.parent)
        elif kind == 4:
            same = sorted(p for other in others for p in other.rglob(path.name) if p.is_file())
            path.write_bytes(draw.choice(same).read_bytes() if same else b"")
        else:
            path.write_bytes(damage_any(path.name)(path.read_bytes(), draw))
    return ", ".join(said)


def damage_any(name: str) -> Callable[[bytes, random.Random], bytes]:
    """What damages a file of this name, inside its format as far as that is text."""
    if name.endswith((".json", ".jsonl")):

        def lines(content: bytes, draw: random.Random) -> bytes:
            parts = content.split(b"\n") if name.endswith(".jsonl") else [content]
            i = draw.randrange(len(parts))
            try:
                parts[i] = damage_json(parts[i], draw)
            except (ValueError, RecursionError):
                parts[i] = damage_bytes(parts[i], draw)
            return b"\n".join(parts)

        return lines
    if name.endswith(".toml"):
        return damage_lines
    if name.endswith((".csv", ".tsv")):
        return lambda content, draw: damage_lines(content, draw, "\t" if name.endswith(".tsv") else ",")
    return damage_bytes
