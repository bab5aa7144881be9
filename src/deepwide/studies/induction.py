"""Do induction heads need two layers, and are they made as the papers say? (Elhage et al. 2021, Olsson et al. 2022)"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from deepwide.answers import Interval, Note
from deepwide.probes import (
    ROUTES,
    ablation,
    attention_patterns,
    composition_scores,
    copying_scores,
    head_weights,
    in_context_score,
    induction_scores,
    previous_token_scores,
    random_composition,
    repeated_blocks,
    token_losses,
)
from deepwide.settings import Natural, Part, Positive
from deepwide.studies.estimates import mean_interval
from deepwide.studies.rules import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Claim, Measured, Rule, Ruling
from deepwide.studies.study import Source, Study
from deepwide.studies.workplace import Workplace

if TYPE_CHECKING:
    from deepwide.model import Transformer
    from deepwide.run import RunRecord

# What the verdicts hang on. Written before the first run of preset cpu; part of the rules' hash.
CAN = 0.5  # copy accuracy above which a network copies by induction; the heads of such networks are judged,
CANNOT = 0.25  # below which it does not
COPIES = 0.5  # copying score above which a head copies
ABRUPT = 0.5  # an abrupt rise takes less than this share of the steps that passed before it began
TOGETHER = 0.25  # two rises at the same time differ by less than this share of the steps to the first
FEWEST = 5  # networks without which nothing is decided

LOOKS = 0.5  # the score from which a head is called a previous-token head, for the ablation
ACCURACY = "copy accuracy, "
ONE, TWO, SMALL_INIT = "1 layer", "2 layers", "2 layers, initial weights of size 0.02"
WIDE, LONG, SLOW = "1 layer, twice as wide", "1 layer, four times the steps", "1 layer, a third of the rate"
RISE = "steps in which copy accuracy rises, over the steps before"
DELAY = "delay of copy accuracy behind the induction score, over the steps before"
EXCESS = "-composition of the previous-token head with the induction head, above chance"
CHANCE = "97.5% of random pairs of heads compose by less than this above the mean"


def two_layers(measured: Measured) -> Ruling:
    gain = measured.number("copy accuracy of 2 layers less that of 1")
    two = measured.number(ACCURACY + TWO)
    ones = [measured.number(ACCURACY + name) for name in (ONE, WIDE, LONG, SLOW)]
    if not _enough(measured, "networks per depth", two, *ones):
        return Ruling(NOT_DECIDABLE, gain, (_few(),))
    if _low(two) > CAN and all(_high(one) < CANNOT for one in ones):
        return Ruling(REPRODUCED, gain)
    fails = _high(two) < CAN or any(_low(one) > CANNOT for one in ones)
    return Ruling(NOT_REPRODUCED if fails else NOT_DECIDABLE, gain)


def composes(measured: Measured) -> Ruling:
    if _none_copies(measured):
        return Ruling(NOT_DECIDABLE, None, (_few(),))
    excess, chance = measured.number("K" + EXCESS), measured.number(CHANCE).value
    if not _enough(measured, "networks of 2 layers that copy", excess):
        return Ruling(NOT_DECIDABLE, excess, (_few(),))
    if _low(excess) > chance:
        return Ruling(REPRODUCED, excess)
    return Ruling(NOT_REPRODUCED if _high(excess) < chance else NOT_DECIDABLE, excess)


def copies(measured: Measured) -> Ruling:
    if _none_copies(measured):
        return Ruling(NOT_DECIDABLE, None, (_few(),))
    score = measured.number("copying score of the induction head")
    if not _enough(measured, "networks of 2 layers that copy", score):
        return Ruling(NOT_DECIDABLE, score, (_few(),))
    if _low(score) > COPIES:
        return Ruling(REPRODUCED, score)
    return Ruling(NOT_REPRODUCED if _high(score) < COPIES else NOT_DECIDABLE, score)


def appears_at_once(measured: Measured) -> Ruling:
    if _none_copies(measured):
        return Ruling(NOT_DECIDABLE, None, (_few(),))
    rise, delay = measured.number(RISE), measured.number(DELAY)
    if not _enough(measured, "networks of 2 layers that copy", rise, delay):
        return Ruling(NOT_DECIDABLE, rise, (_few(),))
    if _high(rise) < ABRUPT and _low(delay) > -TOGETHER and _high(delay) < TOGETHER:
        return Ruling(REPRODUCED, rise)
    fails = _low(rise) > ABRUPT or _low(delay) > TOGETHER or _high(delay) < -TOGETHER
    return Ruling(NOT_REPRODUCED if fails else NOT_DECIDABLE, rise)


def _enough(measured: Measured, count: str, *intervals: Interval) -> bool:
    return measured.number(count).value >= FEWEST and all(i.low is not None and i.high is not None for i in intervals)


def _none_copies(measured: Measured) -> bool:
    return measured.number("networks of 2 layers that copy").value == 0


def _low(interval: Interval) -> float:
    assert interval.low is not None
    return interval.low


def _high(interval: Interval) -> float:
    assert interval.high is not None
    return interval.high


def _few() -> Note:
    return Note.of("few_networks", "too few networks for a verdict", fewest=FEWEST)


class InductionSettings(Part):
    """How many networks of which size, on which sequences."""

    seeds: Positive = 5  # networks of each kind, one seed each
    first_seed: Natural = 0
    depths: tuple[Positive, ...] = (1, 2, 3)
    width: Positive = 32
    heads: Positive = 2
    length: Positive = 24
    symbols: Positive = 32
    shortest: Positive = 4  # tokens of the shortest block that comes twice
    longest: Positive = 8  # tokens of the longest one
    steps: Annotated[int, Field(ge=4, le=10**9)] = 500
    warmup: Positive = 30
    batch: Positive = 32
    lr: Annotated[float, Field(gt=0, le=1)] = 1e-2
    snapshots: Positive = 50  # snapshots of the weights during training; as many evaluations
    examples: Positive = 128  # sequences of an evaluation
    blocks: Positive = 64  # repeated blocks, as long as the longest, that scores of heads are measured on

    @model_validator(mode="after")
    def _depths_can_be_compared(self) -> Self:
        if not {1, 2} <= set(self.depths):
            raise ValueError("depths must contain 1 and 2: the claims compare them")
        return self


class Induction(Study):
    """Induction heads in networks of attention alone."""

    name = "induction"
    question = "Do induction heads need two layers, and are they a previous-token head and a copying head composed?"
    source = Source(
        "Elhage et al. 2021, A Mathematical Framework for Transformer Circuits; Olsson et al. 2022, In-context "
        "Learning and Induction Heads.",
        "https://arxiv.org/abs/2209.11895",
    )
    rules = (
        Rule(
            Claim(
                "two layers",
                "Networks of attention alone form induction heads with two layers and cannot with one.",
                "Elhage et al., sections on one- and two-layer models; Olsson et al., argument 2",
            ),
            "Copy accuracy: the share of right next tokens in the second copy of a random block at a random distance. "
            f"Reproduced if the mean over seeds is above {CAN:g} with 2 layers (95% lower limit) and below {CANNOT:g} "
            "with 1 layer, alike and with twice the width and heads, four times the steps, or a third of the rate "
            "(upper limits); not reproduced if an interval lies on the other side; not decidable with fewer than "
            f"{FEWEST} seeds. Shown is the difference between 2 layers and 1 of equal width, in pairs of equal seeds.",
            two_layers,
        ),
        Rule(
            Claim(
                "composition",
                "An induction head is made by K-composition with a previous-token head in an earlier layer.",
                "Elhage et al., section on how induction heads work",
            ),
            f"In the networks of 2 layers with copy accuracy above {CAN:g}: the head of layer 2 with the largest "
            "induction score and the head of layer 1 with the largest previous-token score, both chosen by their "
            "patterns. ‖W_OV W_QKᵀ‖ / (‖W_OV‖ ‖W_QK‖) less its mean for random matrices of the same sizes: reproduced "
            "if the 95% interval of the mean over networks is above the 97.5% quantile of random matrices, not "
            f"reproduced if below; not decidable with fewer than {FEWEST} such networks.",
            composes,
        ),
        Rule(
            Claim(
                "copying",
                "Induction heads copy: the eigenvalues of their W_E W_OV W_U are mostly positive.",
                "Elhage et al., section on copying and its eigenvalues; Olsson et al., argument 4",
            ),
            f"In the same networks, Σ Re λ / Σ |λ| of the induction head: reproduced if the 95% interval of the mean "
            f"is above {COPIES:g}, not reproduced if below; not decidable with fewer than {FEWEST} such networks.",
            copies,
        ),
        Rule(
            Claim(
                "abrupt",
                "The ability to copy appears abruptly during training, at the same time as the induction heads.",
                "Olsson et al., argument 1 and the phase change",
            ),
            "In the same networks, by linear interpolation between snapshots, the steps from a quarter to three "
            "quarters of the final copy accuracy, and the delay from half of the final induction score (the largest of "
            "all heads) to half of the final copy accuracy, both over the steps to a quarter of the final copy "
            f"accuracy. Reproduced if the 95% interval of the mean of the first is below {ABRUPT:g} and that of the "
            f"second within ±{TOGETHER:g}; not reproduced if one lies outside; not decidable with fewer than {FEWEST} "
            "such networks.",
            appears_at_once,
        ),
    )
    Settings = InductionSettings
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"seeds": 2, "depths": [1, 2], "first_seed": 100, "steps": 400, "snapshots": 16},
        "cpu": {"seeds": 8, "first_seed": 20},
        "paper": {
            "depths": [1, 2, 3],
            "width": 768,
            "heads": 12,
            "length": 2048,
            "symbols": 8192,
            "shortest": 64,
            "longest": 512,
            "steps": 76_000,
            "warmup": 1000,
            "batch": 64,
            "lr": 1e-3,
            "snapshots": 200,
        },
    }
    method = (
        "Networks of attention alone (no feed-forward, norms or biases; learned positions; weights of variance "
        "1/fan-in) are trained on the task `repeats`: distinct random tokens in which one block comes twice, at random "
        "places and of random length; the loss counts the second copy but for its first token. AdamW without weight "
        "decay, a constant rate after the warm-up. Beside the depths, 2 layers whose initial weights have GPT-2's size "
        "of 0.02 and three kinds of 1 layer are trained: of twice the width and heads, for four times the steps, and "
        "at a third of the rate. Scores of heads are measured on other random "
        "blocks, each followed by itself: induction (attention at offset −(T − 1) in the second half), previous token, "
        "copying, and composition less its mean for random matrices. In the ablation, the outputs of all heads of "
        f"layer 1 with a previous-token score of at least {LOOKS:g}, or of all others, are set to zero."
    )
    differences = (
        "The originals train on text, this study on random tokens with repeats, where only induction predicts anything "
        "and its failure cannot hide behind other abilities. The loss leaves out what cannot be predicted, so the "
        "in-context score (late less early loss) is measured where the network was never trained and is much larger "
        "than the papers'; no rule uses it. Networks have 32 dimensions instead of 768, 2 heads instead of 12, and see "
        "400,000 tokens. Positions are added to the residual stream; Elhage et al. add them to queries and "
        "keys alone (recalled). Task, size and learning rate were chosen on seeds 100 and 101; the published run is on "
        "seeds that no run before it had. The rules on one layer and on abruptness are the second ones: the first had "
        "one layer at one rate and one length alone, and measured the rise as a share of the whole training. "
        "The preset paper has the size of the originals' small networks (as recalled), with this study's task."
    )

    def sweeps(self, settings: InductionSettings) -> Mapping[str, Mapping[str, Any]]:
        every = max(1, settings.steps // settings.snapshots)
        model = {
            "width": settings.width, "heads": settings.heads, "ff_width": 0, "norm": "none", "final_norm": False,
            "tied": False, "qkv_bias": False, "out_bias": False, "initialisation": "fan_in",
        }  # fmt: skip
        names = ("length", "symbols", "shortest", "longest")
        run: dict[str, Any] = {
            "task": {"name": "repeats", **{name: getattr(settings, name) for name in names}},
            "steps": settings.steps,
            "batch": settings.batch,
            "optimiser": {"lr": settings.lr, "weight_decay": 0.0},
            "schedule": {"kind": "constant", "warmup": settings.warmup, "cooldown": 0},
            "evaluation": {"every": every, "sequences": settings.examples},
            "checkpoint_every": every,
            "log_every": every,
        }
        seeds = list(range(settings.first_seed, settings.first_seed + settings.seeds))
        one, slow = model | {"depth": 1}, {"lr": settings.lr / 3, "weight_decay": 0.0}
        wide = model | {"depth": 1, "width": 2 * settings.width, "heads": 2 * settings.heads}
        small = model | {"depth": 2, "initialisation": "gpt2"}
        every_snapshot = {"keep_checkpoints": 1_000_000}
        return {
            "depths": {
                "seeds": seeds,
                "run": run | every_snapshot | {"model": model},
                "grid": {"model.depth": list(settings.depths)},
            },
            "wide": {"seeds": seeds, "run": run | {"model": wide}},
            "long": {"seeds": seeds, "run": run | {"model": one, "steps": 4 * settings.steps}},
            "slow": {"seeds": seeds, "run": run | {"model": one, "optimiser": slow}},
            "init": {"seeds": seeds, "run": run | {"model": small}},
        }

    def measure(self, settings: InductionSettings, workplace: Workplace) -> Measured:
        from deepwide.run import read_runs

        networks, heads, training = [], [], []
        pictures: list[dict[str, Any]] = []
        for record in sorted(read_runs(workplace.runs["depths"]), key=_depth_and_seed):
            depth, seed = _depth_and_seed(record)
            measure = partial(_measure_network, record, settings)
            snapshots, one, each, picture = workplace.part(f"heads of {_layers(depth)}, seed {seed}", measure)
            networks.append({"network": _layers(depth), "seed": seed, **one, **_rise(snapshots)})
            labels = {"depth": depth, "seed": seed}
            heads += [labels | row for row in each]
            training += [labels | row for row in snapshots]
            if depth == 2 and not pictures and one["copy_accuracy"] > CAN:
                pictures = picture
        for sweep, name in (("wide", WIDE), ("long", LONG), ("slow", SLOW), ("init", SMALL_INIT)):
            runs = sorted(read_runs(workplace.runs[sweep]), key=_depth_and_seed)
            networks += [
                {"network": name, "seed": run.config["seed"], "copy_accuracy": run.result["accuracy"]} for run in runs
            ]
        numbers = _numbers(networks, settings)
        tables = {"networks": networks, "training": training, "heads": heads, "pattern": pictures}
        return Measured(numbers=numbers, tables=tables, notes=_notes(networks))

    def figures(self, measured: Measured) -> Mapping[str, Any]:
        from deepwide.figures import attention_chart, step_chart

        scores = {"accuracy": "copy accuracy", "induction": "induction score", "previous": "previous-token score"}
        rows = measured.table("training")
        by_depth = [row for name, title in scores.items() for row in _mean_curves(rows, name, title)]
        alone = [
            {"panel": f"seed {row['seed']}", "line": title, "step": row["step"], "value": row[name]}
            for name, title in scores.items()
            for row in rows
            if row["depth"] == 2 and row["seed"] in sorted({row["seed"] for row in rows})[:4]
        ]
        heads = "the largest of all heads"
        charts = {
            "training": step_chart(
                by_depth,
                "Copying and the heads that do it, during training",
                f"mean and 95% interval over seeds; scores: {heads}",
            ),
            "together": step_chart(alone, "Networks of 2 layers, one by one", f"scores: {heads}"),
        }
        if pattern := measured.table("pattern"):
            seed = pattern[0]["seed"]
            below = "a random block, and the same block again (white lines); rows look at columns"
            charts["heads"] = attention_chart(pattern, f"Attention of the two heads, 2 layers, seed {seed}", below)
        return charts


def _layers(depth: int) -> str:
    return f"{depth} layer" + ("s" if depth > 1 else "")


def _depth_and_seed(record: "RunRecord") -> tuple[int, int]:
    return record.config["model"]["depth"], record.config["seed"]


def _tokens(settings: InductionSettings) -> Any:
    block = min(settings.longest, settings.length // 2)
    return repeated_blocks(settings.symbols, block, settings.blocks)


def _snapshots(record: "RunRecord", settings: InductionSettings) -> list[dict[str, Any]]:
    """Copy accuracy and the largest scores of heads at every evaluation."""
    from deepwide.run import RunFolder
    from deepwide.training import trained_model

    folder, tokens = RunFolder.open(record.path), _tokens(settings)
    block = tokens.shape[1] // 2
    rows = []
    for evaluation in folder.metrics():
        if evaluation["kind"] != "validation":
            continue
        model = trained_model(folder, evaluation["step"])
        pattern = attention_patterns(model, tokens)
        rows.append(
            {
                "step": evaluation["step"],
                "accuracy": evaluation["accuracy"],
                "induction": float(induction_scores(pattern).max()),
                "previous": float(previous_token_scores(pattern).max()),
                "in_context": in_context_score(token_losses(model, tokens), late=2 * block - 1, early=block - 1),
            }
        )
    return rows


def _measure_network(record: "RunRecord", settings: InductionSettings) -> tuple[Any, ...]:
    return _snapshots(record, settings), *_network(record, settings)


def _network(
    record: "RunRecord", settings: InductionSettings
) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    """A trained network: its induction head and what feeds it, all its heads, and the patterns of the two."""
    from deepwide.training import trained_model

    model = trained_model(record.path)
    tokens, weights = _tokens(settings), head_weights(model)
    pattern = attention_patterns(model, tokens)
    induction, previous, copying = induction_scores(pattern), previous_token_scores(pattern), copying_scores(weights)
    heads = [
        {
            "layer": layer + 1,
            "head": head + 1,
            "induction": induction[layer, head],
            "previous": previous[layer, head],
            "copying": copying[layer, head],
        }
        for layer, head in np.ndindex(induction.shape)
    ]
    row: dict[str, Any] = {"copy_accuracy": record.result["accuracy"]}
    layer, head = (int(i) for i in np.unravel_index(induction.argmax(), induction.shape))
    row |= {
        "induction_head": f"{layer + 1}.{head + 1}",
        "induction": induction[layer, head],
        "copying": copying[layer, head],
    }
    if layer == 0:
        return row, heads, []
    earlier = previous[:layer]
    feeder = tuple(int(i) for i in np.unravel_index(earlier.argmax(), earlier.shape))
    row |= {"previous_token_head": f"{feeder[0] + 1}.{feeder[1] + 1}", "previous": previous[feeder]}
    chance = float(_chance(settings).mean())
    for route, scores in composition_scores(weights).items():
        row[route] = scores[(*feeder, layer, head)] - chance
    looking = [(0, number) for number in range(settings.heads) if previous[0, number] >= LOOKS]
    others = [(0, number) for number in range(settings.heads) if previous[0, number] < LOOKS]
    if looking:
        row["accuracy_without_previous_token_heads"] = _accuracy_without(looking, model, record, settings)
    if others:
        row["accuracy_without_the_other_heads"] = _accuracy_without(others, model, record, settings)
    shown = {"previous-token head": feeder, "induction head": (layer, head)}
    names = {f"layer {at[0] + 1}, head {at[1] + 1}: {name}": at for name, at in shown.items()}
    picture = [
        {"seed": record.config["seed"], "head": name, "row": i, "column": j, "attention": round(float(weight), 4)}
        for name, (at, number) in names.items()
        for (i, j), weight in np.ndenumerate(pattern[at, 0, number].numpy())
        if j <= i
    ]
    return row, heads, picture


def _accuracy_without(
    heads: Sequence[tuple[int, int]], model: "Transformer", record: "RunRecord", settings: InductionSettings
) -> float:
    """Copy accuracy with the outputs of some heads set to zero."""
    import torch

    from deepwide.training import RunConfig, task_of

    task = task_of(RunConfig.of(record.config))
    sums: dict[str, float] = {}
    with torch.no_grad():
        for batch in task.evaluation(settings.examples, 64):
            logits, _ = model.run_with_cache(batch.tokens_BT, ["logits"], edits=ablation(heads))
            for name, value in task.measure(batch, 0.0, lambda logits=logits: logits).items():  # type: ignore[misc]
                sums[name] = sums.get(name, 0.0) + value
    return task.metrics(sums)["accuracy"]


def _chance(settings: InductionSettings) -> Any:
    return random_composition(settings.width, settings.width // settings.heads)


def _rise(snapshots: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """When copy accuracy and induction score reach shares of their final values; nothing where the network failed."""
    if snapshots[-1]["accuracy"] <= CAN:
        return {}
    quarter, half, three_quarters = (_reached(snapshots, "accuracy", share) for share in (0.25, 0.5, 0.75))
    heads, before = _reached(snapshots, "induction", 0.5), max(quarter, 1.0)
    return {
        "half_of_accuracy_at_step": half,
        "half_of_induction_at_step": heads,
        "rise": (three_quarters - quarter) / before,
        "delay": (half - heads) / before,
    }


def _reached(snapshots: Sequence[Mapping[str, Any]], name: str, share: float) -> float:
    """The first step at which a curve reaches a share of its last value, by linear interpolation."""
    goal = share * snapshots[-1][name]
    at = next(i for i, row in enumerate(snapshots) if row[name] >= goal)
    if at == 0:
        return float(snapshots[0]["step"])
    before, after = snapshots[at - 1], snapshots[at]
    part = (goal - before[name]) / (after[name] - before[name])
    return float(before["step"] + part * (after["step"] - before["step"]))


def _numbers(networks: Sequence[Mapping[str, Any]], settings: InductionSettings) -> dict[str, Interval]:
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for row in networks:
        by_name.setdefault(row["network"], []).append(row)
    copying = [row for row in by_name[TWO] if row["copy_accuracy"] > CAN and "K" in row]
    pairs = zip(by_name[TWO], by_name[ONE], strict=True)
    chance = _chance(settings)
    numbers = {"networks per depth": Interval(settings.seeds), "networks of 2 layers that copy": Interval(len(copying))}
    numbers |= {ACCURACY + name: _mean(rows, "copy_accuracy") for name, rows in by_name.items()}
    numbers["copy accuracy of 2 layers less that of 1"] = mean_interval(
        [two["copy_accuracy"] - one["copy_accuracy"] for two, one in pairs]
    )
    numbers["largest induction score of 1 layer"] = _mean(by_name[ONE], "induction")
    numbers[CHANCE] = Interval(float(np.quantile(chance, 0.975) - chance.mean()))
    if not copying:
        return numbers
    numbers["induction score of the induction head"] = _mean(copying, "induction")
    numbers["previous-token score of the previous-token head"] = _mean(copying, "previous")
    numbers["copying score of the induction head"] = _mean(copying, "copying")
    numbers |= {route + EXCESS: _mean(copying, route) for route in ROUTES}
    numbers |= {RISE: _mean(copying, "rise"), DELAY: _mean(copying, "delay")}
    for name, words in (
        ("accuracy_without_previous_token_heads", "copy accuracy of 2 layers without the previous-token heads"),
        ("accuracy_without_the_other_heads", "copy accuracy of 2 layers without the other heads of layer 1"),
    ):
        if any(name in row for row in copying):
            numbers[words] = _mean(copying, name)
    return numbers


def _mean(rows: Sequence[Mapping[str, Any]], name: str) -> Interval:
    return mean_interval([row[name] for row in rows if name in row])


def _notes(networks: Sequence[Mapping[str, Any]]) -> tuple[Note, ...]:
    two = [row for row in networks if row["network"] == TWO]
    formed = [row for row in two if row["copy_accuracy"] > CAN and "K" in row]
    largest = {route: sum(max(ROUTES, key=row.__getitem__) == route for row in formed) for route in ROUTES}
    small = [row for row in networks if row["network"] == SMALL_INIT]
    learned = sum(row["copy_accuracy"] > CAN for row in small)
    return (
        Note.of("formed", f"{len(formed)} of {len(two)} networks of 2 layers copy by an induction head in layer 2"),
        Note.of(
            "routes",
            "The induction head reads the previous-token head most by its keys in "
            f"{largest['K']}, by its queries in {largest['Q']}, by its values in {largest['V']} of them",
        ),
        Note.of("init", f"From initial weights of size 0.02, {learned} of {len(small)} networks of 2 layers copy"),
        Note.of("in_context", "In-context scores are in the table of the training; early tokens were never trained on"),
    )


def _mean_curves(rows: Sequence[Mapping[str, Any]], name: str, panel: str) -> list[dict[str, Any]]:
    """The mean over seeds by step and depth with its interval, within 0 and 1."""
    values: dict[tuple[int, int], list[float]] = {}
    for row in rows:
        values.setdefault((row["depth"], row["step"]), []).append(row[name])
    curves = []
    for (depth, step), sample in sorted(values.items()):
        mean = mean_interval(sample)
        low, high = (None if end is None else min(max(end, 0.0), 1.0) for end in (mean.low, mean.high))
        curves.append(
            {"panel": panel, "line": _layers(depth), "step": step, "value": mean.value, "low": low, "high": high}
        )
    return curves
