"""What still breaks a rule of the house (tests/source.py). These lists may only shrink: what is new is put right."""

PAST_A_DOOR: set[str] = {
    "cli.fit -> figures.fitted",
    "cli.pictures -> figures.depth_width",
    "cli.rank -> figures.separation",
    "cli.separation -> figures.separation",
    "cli.train -> figures.scaling",
    "fitting.runs -> sweeping.trainers",
    "planning.budget -> shape.flops",
    "planning.budget -> shape.memory",
    "planning.budget -> shape.params",
    "planning.budget -> shape.rounding",
    "planning.budget -> shape.style",
    "planning.plan -> shape.rounding",
    "planning.plan -> shape.style",
    "sweeping.trainers.toy -> run.toy",
}
CIRCLES: set[str] = set()
OPTIONS: set[str] = {
    "figures.fitted: --bootstrap",
    "fitting.curves: --where",
    "fitting.fit: --noise",
    "fitting.ridge: --base",
    "fitting.ridge: --drift",
    "fitting.ridge: --embeddings",
    "fitting.ridge: --where",
    "fitting.runs: --column",
    "fitting.runs: --where",
    "fitting.transition: --slope",
    "fitting.transition: --where",
    "shape.config: --network",
}
WITHOUT_A_TEST: set[str] = {
    "arrays.py",
    "cli/pictures.py",
    "cli/shapes.py",
    "cli/tables.py",
    "faults.py",
    "figures/save.py",
    "fitting/curves.py",
    "fitting/diagnosis.py",
    "fitting/fit.py",
    "fitting/resampling.py",
    "fitting/robust.py",
    "fitting/simulate.py",
}
VAGUE_NAMES: dict[str, int] = {"made": 25, "found": 17, "said": 14, "kept": 9, "told": 2}
LONG_LINES: dict[str, int] = {"fit.md": 73, "planner.md": 3, "shape.md": 2, "theory.md": 59}
# Functions of docs/api.md that do not exist yet; their examples were tried in the branches that have them.
NOT_YET = {"audit", "count", "fit", "plan"}
