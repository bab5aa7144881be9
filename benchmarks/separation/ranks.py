"""`python -m benchmarks.separation.ranks`: the certificates of results/separation/{ranks,structured} as tables."""

from pathlib import Path

from deepwide.separation import Store, read_structured

RESULTS = Path(__file__).parents[2] / "results" / "separation"


def table(folder: Path) -> str:
    """One line for each certificate with a whole seal, smallest case first."""
    rows = []
    for certificate in Store(folder).certificates():
        case, blocks, second = certificate.case, certificate.blocks, certificate.confirmed
        a, b = case.positions
        kind = [word for word in ("residual", "causal") if getattr(case, word)]
        kind = [f"causal, {case.sides} read at {case.at}" if word == "causal" else word for word in kind]
        kind += [case.weights] if case.weights != "random" else []
        kind += [f"{a} + {b} positions"] if (a, b) != (case.width, case.width) else []
        if second and second.blocks != blocks:
            raise SystemExit(f"{case.name()} was confirmed with other ranks")
        shown = " ".join(map(str, blocks)) if 1 < len(blocks) <= 14 else "–"
        confirmed = f"{second.prime}, FLINT" if second else "no"
        met = "=" if certificate.reached else "<"
        line = f"{case.depth} | {case.width} | {case.heads} | {', '.join(kind) or '–'} | {certificate.rank} "
        line += f"| {met} | {certificate.bound} | {shown} | {confirmed}"
        rows.append((bool(kind), case.heads > 1, case.depth, case.width, case.heads, f"| {line} |"))
    head = "| L | d | H | kind | rank | | upper bound | blocks | confirmed modulo |\n" + "|---" * 9 + "|\n"
    return head + "\n".join(row[-1] for row in sorted(rows)) + "\n"


def whole(seconds: float | None) -> str:
    """Seconds without decimals."""
    if seconds is None:
        return "–"
    return "< 1" if seconds < 0.5 else f"{seconds:.0f}"


def structured_table(folder: Path) -> str:
    """One line for each certificate of structured weights: what was ranked, and what follows for generic weights."""
    rows = []
    for file in folder.glob("*.json"):
        c = read_structured(file)
        blocks = ", ".join(f"{block.block}: {block.rank} of {block.bound}" for block in c.blocks)
        largest = max((block.largest for block in c.blocks), key=min)
        primes = str(c.prime) + (f", {c.second.prime} ({c.second.algorithm})" if c.second else "")
        seconds = c.seconds + (c.second.seconds if c.second else 0.0)
        rank = f"**{c.lower}**" if c.reached else f"{c.lower} to {c.upper}"
        line = f"{c.depth} | {c.width} | {c.weights} | {rank} | {blocks} | {largest[0]} × {largest[1]} | {primes}"
        line += f" | {whole(seconds)} | {whole(c.cpu_seconds)} | "
        line += f"{c.peak_bytes / 1e9:.1f} GB" if c.peak_bytes else "–"
        rows.append((c.depth, c.width, c.weights, f"| {line} |"))
    head = "| L | d | weights | rank of generic weights | blocks | largest class | modulo | seconds | CPU | memory |\n"
    return head + "|---" * 10 + "|\n" + "\n".join(row[-1] for row in sorted(rows)) + "\n"


if __name__ == "__main__":
    for name, written in (
        ("ranks.md", table(RESULTS / "ranks")),
        ("structured.md", structured_table(RESULTS / "structured")),
    ):
        (RESULTS / name).write_text(written)
        print(written)
