"""Pictures of the separation rank: bounds, count and measurement; ranks of a range; spectra."""

from pathlib import Path
from typing import Any

import altair as alt

from deepwide.errors import DeepwideError
from deepwide.separation import certificates
from deepwide.separation.case import Case
from deepwide.separation.counting import count
from deepwide.separation.measurement import measure
from deepwide.separation.theorems import bounds, log3, log3_count

_ENDINGS = (".svg", ".png", ".html", ".json")
_MEASURED_UP_TO = 500  # ranks small enough to measure while the picture is drawn
_DEEPEST_WITH_HEADS = 6
_COLOURS = {
    "theorem, at most": "#b2182b",
    "theorem, at least": "#2166ac",
    "count, one head": "#444444",
    "count, these heads": "#e08214",
    "measured": "#1b7837",
}


def save(chart: Any, path: Path) -> None:
    """One chart, as the file's ending says."""
    check_ending(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    chart.save(str(path), **({"scale_factor": 2} if path.suffix == ".png" else {}))


def check_ending(path: Path) -> None:
    """Refuse a picture that could not be saved, before the work for it begins."""
    if path.suffix not in _ENDINGS:
        raise DeepwideError(f"A picture must end in {', '.join(_ENDINGS)}; {path.name!r} does not.")


def bounds_figure(depth: int, width: int, heads: int, measured: Path | None = None) -> Any:
    """Theorems, count and measured ranks against depth at this width and against width at this depth."""
    known = _certified(measured)
    ours = [(n, w) for n, w, h in known if h == heads]
    depths = sorted({*range(1, max(8, depth + depth // 2) + 1), *(n for n, w in ours if w == width)})
    near = {w for power in range(7) for w in _near(width, power) if w >= heads}
    widths = sorted({*near, width, *(w for n, w in ours if n == depth)})
    by_depth = [row for n in depths for row in _rows(n, width, heads, "depth", n, known)]
    by_width = [row for w in widths for row in _rows(depth, w, heads, "width", w, known)]
    heads_word = "1 head" if heads == 1 else f"{heads} heads"
    return alt.hconcat(
        _panel(by_depth, "depth", f"width {width}, {heads_word}", alt.Scale()),
        _panel(by_width, "width", f"depth {depth}, {heads_word}", alt.Scale(type="log", base=2)),
    )


def _near(width: int, power: int) -> list[int]:
    return [width >> power, width << power]


def _rows(
    depth: int, width: int, heads: int, axis: str, x: int, known: dict[tuple[int, int, int], int]
) -> list[dict[str, Any]]:
    theory = bounds(depth, width, heads)
    found = {"count, one head": float(log3_count(depth, width))}
    if theory.upper is not None:
        found["theorem, at most"] = float(theory.upper)
    if theory.lower is not None and theory.lower > 0:
        found["theorem, at least"] = float(theory.lower)
    divides = width % heads == 0
    if heads > 1 and divides and depth <= _DEEPEST_WITH_HEADS and width <= 64:
        found["count, these heads"] = float(log3(count(depth, width, heads).total))
    small = depth <= 4 and divides and log3_count(depth, width) < log3(_MEASURED_UP_TO)
    rank = known.get((depth, width, heads)) or (measure(Case(depth, width, heads)).rank if small else None)
    if rank:
        found["measured"] = float(log3(rank))
    # A line is not drawn across the threshold: the two theorems are different curves.
    return [
        {
            axis: x,
            "log3": value,
            "what": what,
            "curve": f"{what} {theory.theorem if 'theorem' in what else ''}",
        }
        for what, value in found.items()
    ]


def _certified(folder: Path | None) -> dict[tuple[int, int, int], int]:
    """Ranks of random networks with enough positions, from a folder of certificates."""
    known = {}
    if folder is not None:
        files = sorted(folder.glob("*.json")) if folder.is_dir() else []
        if not files:
            raise DeepwideError(f"There are no certificates in {folder}; make some with deepwide rank --out.")
        for file in files:
            content = certificates.read(file)
            case = certificates.case_of(content)
            if case == Case(case.depth, case.width, case.heads, seed=case.seed):
                known[case.depth, case.width, case.heads] = content["rank"]
    return known


def _panel(rows: list[dict[str, Any]], axis: str, title: str, scale: Any) -> Any:
    names = [name for name in _COLOURS if any(row["what"] == name for row in rows)]
    base = alt.Chart(alt.InlineData(values=rows), title=title, width=320, height=280).encode(
        x=alt.X(f"{axis}:Q", title=axis, scale=scale, axis=alt.Axis(tickMinStep=1, format="d")),
        y=alt.Y("log3:Q", title="log_3 of the separation rank", scale=alt.Scale(type="symlog")),
        color=alt.Color("what:N", title=None, scale=alt.Scale(domain=names, range=[_COLOURS[name] for name in names])),
        detail="curve:N",
        tooltip=["what:N", f"{axis}:Q", alt.Tooltip("log3:Q", format=".5g")],
    )
    points = base.transform_filter("datum.what == 'measured'").mark_point(filled=True, size=70, opacity=1)
    lines = base.transform_filter("datum.what != 'measured'").mark_line(point=alt.OverlayMarkDef(size=15))
    return lines + points


def ranks_figure(certified: list[dict[str, Any]]) -> Any:
    """Measured ranks of a range against width, one colour for each depth, with the count as a line."""
    rows = [
        {
            "width": c["case"]["width"],
            "depth": c["case"]["depth"],
            "heads": c["case"]["heads"],
            "rank": c["rank"],
            "count": c["bound"],
        }
        for c in certified
    ]
    base = alt.Chart(alt.InlineData(values=rows), title="measured ranks (points) and their count (lines)").encode(
        x=alt.X("width:Q", axis=alt.Axis(tickMinStep=1, format="d")),
        color=alt.Color("depth:O", scale=alt.Scale(scheme="viridis")),
        shape=alt.Shape("heads:O"),
        tooltip=["depth:O", "width:Q", "heads:O", "rank:Q", "count:Q"],
    )
    log = alt.Scale(type="log")
    lines = base.mark_line().encode(y=alt.Y("count:Q", scale=log, title="separation rank"), detail="heads:O")
    return (lines + base.mark_point(size=70).encode(y=alt.Y("rank:Q", scale=log))).properties(width=420, height=320)


def spectrum_figure(shapes: list[dict[str, Any]]) -> Any:
    """Singular values, largest first, relative to the largest, for each shape."""
    rows = [
        {
            "index": i + 1,
            "value": value / shape["values"][0],
            "shape": f"depth {shape['depth']}, width {shape['width']}, heads {shape['heads']}",
        }
        for shape in shapes
        for i, value in enumerate(shape["values"])
        if value > 1e-16 * shape["values"][0]
    ]
    return (
        alt.Chart(alt.InlineData(values=rows), title="numerical: singular values of a softmax network, no proof")
        .mark_line()
        .encode(
            x=alt.X("index:Q", title="index"),
            y=alt.Y(
                "value:Q",
                title="singular value / largest",
                scale=alt.Scale(type="log"),
                axis=alt.Axis(format="~e"),
            ),
            color=alt.Color("shape:N", title=None),
        )
        .properties(width=420, height=320)
    )
