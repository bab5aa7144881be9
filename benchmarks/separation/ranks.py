"""`python -m benchmarks.separation.ranks`: the certificates of results/separation/ranks as one table."""

from pathlib import Path

from deepwide.separation import Store

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


if __name__ == "__main__":
    (RESULTS / "ranks.md").write_text(table(RESULTS / "ranks"))
    print((RESULTS / "ranks.md").read_text())
