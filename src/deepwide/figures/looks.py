"""Hard attention on a word: from each position of a layer a line to the position below that it takes its value from."""

from typing import TYPE_CHECKING, Any

from deepwide.figures.style import CATEGORIES, FAINT, INK, framed, inline

if TYPE_CHECKING:
    from deepwide.logic import Language

STEP = 34  # pixels per letter
MOST = len(CATEGORIES)  # heads that have a colour of their own


def look_chart(language: "Language") -> Any:
    """An Altair chart of where the heads of a compiled network look on the answer's word, one colour per head."""
    import altair as alt

    word = language.word or ""
    depth = max((each.layer for each in language.looks), default=0)
    heads = [f"{', '.join(each.vectors)}: {each.look}" for each in language.looks]
    lines = [
        {"head": head, "x": place, "y": each.layer - 1, "x2": i, "y2": each.layer}
        for head, each in zip(heads, language.looks, strict=True)
        for i, place in enumerate(each.positions)
        if place is not None
    ]
    letters = [{"x": i, "y": 0, "letter": letter} for i, letter in enumerate(word)]
    dots = [{"x": i, "y": layer} for layer in range(1, depth + 1) for i in range(len(word))]
    x = alt.X("x:Q", title=None, axis=None, scale=alt.Scale(domain=[-0.5, max(len(word), 1) - 0.5], nice=False))
    y = alt.Y(
        "y:Q",
        title="layer",
        axis=alt.Axis(values=list(range(1, depth + 1)), format="d", grid=False),
        scale=alt.Scale(domain=[-0.3, depth + 0.3], nice=False),
    )
    colour = alt.Color(
        "head:N",
        title=None,
        sort=heads,
        scale=alt.Scale(domain=heads[:MOST], range=list(CATEGORIES[: len(heads)])),
        legend=alt.Legend(orient="bottom", columns=2, labelLimit=400),
    )
    drawn = alt.layer(
        alt.Chart(inline(lines))
        .mark_rule(strokeWidth=1.5, opacity=0.75)
        .encode(x=x, y=y, x2="x2:Q", y2="y2:Q", color=colour),
        alt.Chart(inline(dots)).mark_point(filled=True, size=26, color=FAINT, opacity=1).encode(x=x, y=y),
        alt.Chart(inline(letters)).mark_text(fontSize=15, color=INK, dy=6).encode(x=x, y=y, text="letter:N"),
    )
    verdict = {True: "accepted", False: "rejected"}.get(language.answers.get("network"), "")  # type: ignore[arg-type]
    title = f"Where the heads look on {word}"
    below = f"{language.formula or language.text[:80]}: {verdict}"
    return framed(drawn, title, below, max(220, STEP * len(word)), 70 * depth + 60)
