"""What still breaks a rule of the house (tests/source.py). These lists may only shrink: what is new is put right."""

PAST_A_DOOR: set[str] = {
    "cli.rank -> figures.separation",
    "cli.separation -> figures.separation",
    "cli.train -> figures.scaling",
    "sweeping.trainers.toy -> run.toy",
}
CIRCLES: set[str] = set()
OPTIONS: set[str] = set()
WITHOUT_A_TEST: set[str] = {
    "arrays.py",
    "faults.py",
}
VAGUE_NAMES: dict[str, int] = {}
LONG_LINES: dict[str, int] = {"fit.md": 73, "planner.md": 3, "shape.md": 2, "theory.md": 59}
# Functions of docs/api.md that do not exist yet; their examples were tried in the branches that have them.
NOT_YET: set[str] = set()
