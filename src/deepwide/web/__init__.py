"""The page on which a person dials a budget and sees the shape: one HTML file that needs no server and no network."""

from deepwide.web.colours import colour_sheet
from deepwide.web.constants import own_laws, page_constants, plan_defaults
from deepwide.web.page import page_file, plan_page

__all__ = ["colour_sheet", "own_laws", "page_constants", "page_file", "plan_defaults", "plan_page"]
