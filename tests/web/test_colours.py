"""The page's colours come from the pictures' style, and can be told apart and read."""

import re

import pytest

from deepwide.figures import COLOURS, GROUNDS, LAW_COLOURS, LAW_DASHES, on_dark
from deepwide.web.colours import colour_sheet, law_marks

READ = ("ink", "faint")


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """From 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_the_contrast_that_people_need(scheme: str) -> None:
    ground = GROUNDS[scheme]
    for name in READ:
        for behind in ("ground", "panel"):
            assert contrast(ground[name], ground[behind]) >= 4.5, (name, behind)
    verdicts = [COLOURS[kind] for kind in ("too deep", "within", "too shallow")]
    for colour in verdicts:
        shown = colour if scheme == "light" else on_dark(colour)
        assert contrast(shown, ground["panel"]) >= 4.5, colour


def test_every_law_has_a_dash_of_its_own() -> None:
    """So that nobody has to tell laws apart by colour."""
    assert LAW_DASHES.keys() == LAW_COLOURS.keys()
    assert len({law_marks(name)["dash"] for name in (*LAW_DASHES, "somebody's fit")}) == len(LAW_DASHES) + 1
    assert law_marks("levine") == {"mark": "law-levine", "dash": "5 3"}
    assert law_marks("somebody's fit")["mark"] == "law-own"


def test_the_sheet_names_every_colour_twice() -> None:
    sheet = colour_sheet()
    light, dark = (set(re.findall(r"(--[\w-]+): #", part)) for part in sheet.split("@media"))
    assert light == dark
    assert LAW_COLOURS["levine"] in sheet
    assert on_dark(LAW_COLOURS["levine"]) in sheet
