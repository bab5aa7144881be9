"""The coordinate check as a picture: how far activations move in a few steps, against width and against depth."""

import math
from typing import TYPE_CHECKING, Any

from deepwide.figures.style import framed, inline, line_style, panel_title

if TYPE_CHECKING:
    from deepwide.training import ScalingCheck

UNITS = {"width": "width", "depth": "depth (layers)"}


def scaling_chart(check: "ScalingCheck", title: str = "") -> Any:
    """An Altair chart: a row for width and one for depth, a column for each parametrisation, a line for each place."""
    import altair as alt

    rows = _rows(check)
    places = list(dict.fromkeys(row["place"] for row in rows))
    kinds = list(dict.fromkeys(row["parametrisation"] for row in rows))
    changes = [row[name] for row in rows for name in ("least", "most") if row[name] > 0]
    span = [min(changes) / 1.5, max(changes) * 1.5] if changes else [0.1, 1]
    style = line_style("place", places)
    grid: list[Any] = []
    for along in dict.fromkeys(row["along"] for row in rows):
        line: list[Any] = []
        for kind in kinds:
            these = [row for row in rows if (row["along"], row["parametrisation"]) == (along, kind)]
            worst = max(
                (s for s in check.slopes if (s.along, s.parametrisation) == (along, kind)), key=lambda s: abs(s.slope)
            )
            verdict = "flat" if worst.flat else f"grows as {along}^{worst.slope:.1f} ({worst.place})"
            if worst.slope < 0 and not worst.flat:
                verdict = f"shrinks as {along}^{worst.slope:.1f} ({worst.place})"
            sizes = sorted({row["size"] for row in these})
            base = alt.Chart(inline(these)).encode(
                x=alt.X(
                    "size:Q",
                    scale=alt.Scale(type="log", base=2, nice=False),
                    axis=alt.Axis(values=sizes, format="d", grid=False),
                    title=UNITS[along],
                ),
                y=alt.Y(
                    "change:Q",
                    scale=alt.Scale(type="log", domain=span, nice=False),
                    axis=alt.Axis(values=_powers(*span), format="~g"),
                    title="change of activations, rms" if not line else None,
                ),
                color=style["color"],
                tooltip=["parametrisation:N", "place:N", "size:Q", "start:Q", "after:Q", "change:Q"],
            )
            line.append(
                alt.layer(
                    base.mark_rule(strokeWidth=2).encode(y="least:Q", y2="most:Q"),
                    base.mark_line().encode(**style),
                    base.mark_point(filled=True, size=36, opacity=1),
                ).properties(
                    width=210,
                    height=170,
                    title=panel_title(f"{kind}: {verdict}"),
                )
            )
        grid.append(alt.hconcat(*line))
    words = title or "Does one learning rate serve every width and depth?"
    return framed(
        alt.vconcat(*grid), words, "points: geometric means over seeds; bars: from the least seed to the greatest"
    )


def _rows(check: "ScalingCheck") -> list[dict[str, Any]]:
    """One row per place and size: the geometric mean over seeds, and the least and the greatest of them."""
    rows = []
    for key in dict.fromkeys((p.parametrisation, p.along, p.size, p.place) for p in check.points):
        these = [p for p in check.points if (p.parametrisation, p.along, p.size, p.place) == key]
        means = {
            name: math.exp(sum(math.log(max(getattr(p, name), 1e-30)) for p in these) / len(these))
            for name in ("start", "after", "change")
        }
        means |= {"least": min(p.change for p in these), "most": max(p.change for p in these)}
        rows.append(dict(zip(("parametrisation", "along", "size", "place"), key, strict=True)) | means)
    return rows


def _powers(low: float, high: float) -> list[float]:
    return [10.0**n for n in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
