"""The page's colours and dashes, from the style that all pictures have."""

from deepwide.figures import (
    CATEGORIES,
    COLOURS,
    LAW_COLOURS,
    LAW_DASHES,
    OWN_LAW_COLOUR,
    OWN_LAW_DASH,
    RAMP,
    style_sheet,
)


def law_marks(name: str) -> dict[str, str]:
    """How a law is drawn where it is not the chosen one: its CSS class is its colour, and its dash."""
    known = name if name in LAW_COLOURS else "own"
    return {"mark": f"law-{known}", "dash": " ".join(map(str, LAW_DASHES.get(name, OWN_LAW_DASH)))}


def colour_sheet() -> str:
    """Every colour as a CSS variable, for light and for dark screens, and the font."""
    named = {f"law-{name}": colour for name, colour in LAW_COLOURS.items()} | {"law-own": OWN_LAW_COLOUR}
    named |= {f"mark-{kind.replace(' ', '-')}": COLOURS[kind] for kind in ("too deep", "within", "too shallow")}
    named |= {f"category-{number}": colour for number, colour in enumerate(CATEGORIES)}
    named |= {f"ramp-{number}": colour for number, colour in enumerate(RAMP)}
    prefix = "law"
    laws = (f".{prefix}-{name} {{ --{prefix}: var(--{prefix}-{name}); }}\n" for name in (*LAW_COLOURS, "own"))
    return style_sheet(named) + "".join(laws)
