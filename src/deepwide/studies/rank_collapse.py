"""Does attention alone lose rank doubly exponentially with depth, and what prevents it? (Dong et al. 2021)"""

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, get_args

import numpy as np
from pydantic import Field

from deepwide.answers import Interval, Note
from deepwide.errors import DeepwideError
from deepwide.probes import (
    attention_collapse,
    collapse_bound,
    count_paths,
    path_accuracies,
    random_layers,
    remove_parts,
    stream_residuals,
)
from deepwide.run import RunRecord, read_runs
from deepwide.settings import Natural, Part, Positive
from deepwide.studies.estimates import geometric_interval, interval_row, mean_interval
from deepwide.studies.rules import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Claim, Measured, Rule, Ruling
from deepwide.studies.study import Source, Study
from deepwide.studies.workplace import Workplace

# What the verdicts hang on. Written before the first run; part of the rules' hash.
TREBLES = (2.97, 3.03)  # an exponent within 1% of 3 counts as 3
COLLAPSED = 1e-6  # a relative residual below it is collapsed,
HEALTHY = 0.1  # above it, after the deepest networks' last layer, it is not
FEWEST = 10  # random networks without which nothing is decided
FEWEST_TRAINED = 4  # and trained ones
INVISIBLE = 0.01  # a relative residual that the original's figure, with its linear axis, shows as none
LOST = 0.05  # accuracy that long paths must have lost for short ones to be better

FLOOR = 1e-12  # double precision measures relative residuals above it without rounding errors that matter
RESOLUTION = 1e-16  # of double precision: smaller relative residuals, 0 among them, are rounding and count as this
FIRST_FITTED = 3  # the layer from which the growth is fitted: before it, attention is far from its limit
Network = Literal["attention", "attention + MLP", "attention + skip", "attention + skip + MLP"]
NETWORKS: tuple[Network, ...] = get_args(Network)
NORMS = ("post", "none", "pre")
DEEPEST = "relative residual of attention + skip after the deepest networks' last layer"
LAST_TRAINED = "last relative residual of trained encoders, "
GAIN_TRAINED = "log10 of the residual of trained encoders with MLPs over that without"
ORIGINAL, FRESH, ENCODERS = "original recipe", "fresh examples", "encoders"
PANEL = "encoders that sort, LayerNorm after"
SORTED = "sorting networks, "
PATHS = (5, 20)  # how many paths of one length are summed, as in the original
SEQUENCES = 16  # on which trained networks' residuals are measured
SORTED_EXAMPLES = 200  # on which paths are measured, as in the original
# Accuracy by path length 0 … 6, 5 paths, by running the original's code with its own command once.
PUBLISHED = (0.35, 0.46, 0.21, 0.14, 0.12, 0.10, 0.09)
DROP = "accuracy of paths of length 1 less that of the longest, "
Rows = list[dict[str, Any]]
PAPER = {"norm": "post", "mask": "none", "weights": 1.0}  # the original surgery keeps BERT's LayerNorm in all four


def trebles(measured: Measured) -> Ruling:
    exponent = measured.number("exponent p of r ← c·rᵖ")
    if exponent.low is None or exponent.high is None or measured.number("networks").value < FEWEST:
        return Ruling(NOT_DECIDABLE, exponent, (_few(),))
    if TREBLES[0] <= exponent.low and exponent.high <= TREBLES[1]:
        return Ruling(REPRODUCED, exponent)
    outside = exponent.high < TREBLES[0] or exponent.low > TREBLES[1]
    return Ruling(NOT_REPRODUCED if outside else NOT_DECIDABLE, exponent)


def skips_prevent(measured: Measured) -> Ruling:
    alone, skip = measured.number(f"last relative residual, {NETWORKS[0]}"), measured.number(DEEPEST)
    if skip.low is None or skip.high is None or alone.high is None or measured.number("networks").value < FEWEST:
        return Ruling(NOT_DECIDABLE, skip, (_few(),))
    if alone.high > COLLAPSED:
        return Ruling(NOT_DECIDABLE, skip, (Note.of("no_collapse", "attention alone did not collapse here"),))
    if skip.low > HEALTHY:
        return Ruling(REPRODUCED, skip)
    slowed = Note.of("slowed", "skips slow the collapse down; whether they prevent it would need more layers")
    return Ruling(NOT_REPRODUCED, skip) if skip.high < COLLAPSED else Ruling(NOT_DECIDABLE, skip, (slowed,))


def mlps_slow(measured: Measured) -> Ruling:
    gain = measured.number("log10 of the residual with MLPs over that without")
    return _above(gain, 0.0, measured.number("networks"), FEWEST)


def stays_below(measured: Measured) -> Ruling:
    excess = measured.number("largest log10 of residual over bound")
    if measured.number("networks").value < FEWEST:
        return Ruling(NOT_DECIDABLE, excess, (_few(),))
    return Ruling(REPRODUCED if excess.value <= 0 else NOT_REPRODUCED, excess)


def skips_prevent_in_trained(measured: Measured) -> Ruling:
    alone, skip = (measured.numbers.get(f"{LAST_TRAINED}{name}") for name in (NETWORKS[0], NETWORKS[2]))
    encoders = measured.number("trained encoders")
    held = _above(skip, HEALTHY, encoders, FEWEST_TRAINED)
    stayed = _above(alone, INVISIBLE, encoders, FEWEST_TRAINED).outcome
    if stayed == REPRODUCED:  # attention alone keeps its rank
        return held._replace(outcome=NOT_REPRODUCED)
    return held._replace(outcome=NOT_DECIDABLE) if stayed == NOT_DECIDABLE and held.outcome == REPRODUCED else held


def mlps_slow_in_trained(measured: Measured) -> Ruling:
    return _above(measured.numbers.get(GAIN_TRAINED), 0.0, measured.number("trained encoders"), FEWEST_TRAINED)


def short_paths_predict(measured: Measured, recipe: str) -> Ruling:
    drop = measured.numbers.get(f"{DROP}{recipe}")
    return _above(drop, LOST, measured.number(f"{SORTED}{recipe}"), FEWEST_TRAINED)


def _above(value: Interval | None, threshold: float, networks: Interval, fewest: int) -> Ruling:
    """Reproduced if the interval is above the threshold, not reproduced if below."""
    if value is None or value.low is None or value.high is None or networks.value < fewest:
        return Ruling(NOT_DECIDABLE, value, (_few(fewest),))
    if value.low > threshold:
        return Ruling(REPRODUCED, value)
    return Ruling(NOT_REPRODUCED if value.high < threshold else NOT_DECIDABLE, value)


def _few(fewest: int = FEWEST) -> Note:
    return Note.of("few_networks", "too few networks for a verdict", fewest=fewest)


class RankCollapseSettings(Part):
    """How many networks of which size."""

    networks: Positive = 10  # random networks of each kind
    first_seed: Natural = 0
    tokens: Annotated[int, Field(ge=2, le=4096)] = 32  # of the sequences that random networks read
    width: Positive = 64
    heads: Positive = 4
    depth: Positive = 12  # layers of the networks with skips, MLPs, norms and masks
    deepest: Positive = 48  # layers of the networks with skips that the claim about skips is judged on
    attention_depth: Positive = 9  # layers of attention alone, followed beyond double precision
    weights: tuple[float, ...] = (1.0, 4.0)  # queries and keys are multiplied by this
    scales: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0)  # all matrices of attention alone are multiplied by this
    inputs: tuple[float, ...] = (1.0, 1e-3)  # sizes of the inputs for which the bound is compared
    trained: Natural = 1  # networks that are trained of each kind; 0 leaves them out
    sort_steps: Positive = 2167  # of sorting networks by the original's recipe: 65 epochs of 1000 in batches of 30
    fresh_steps: Positive = 700  # training steps of the same networks on examples that do not repeat
    sort_depth: Positive = 6  # layers of the sorting networks
    repeats: Positive = 5  # times that paths of one length are drawn
    encoder_depth: Positive = 12  # layers of the trained networks from which parts are removed
    encoder_width: Positive = 48  # width of those
    encoder_steps: Positive = 300  # training steps of those


class RankCollapse(Study):
    """Rank collapse on random networks."""

    name = "rank-collapse"
    question = "Does attention without skips and MLPs lose rank doubly exponentially with depth?"
    source = Source(
        "Dong, Cordonnier, Loukas 2021, Attention is not all you need: pure attention loses rank doubly "
        "exponentially with depth.",
        "https://arxiv.org/abs/2103.03404",
    )
    rules = (
        Rule(
            Claim(
                "trebles",
                "Under attention alone the residual falls doubly exponentially: r ← c·r³ per layer, so that its "
                "logarithm trebles.",
                "theorem on attention-only networks",
            ),
            "With r = ‖res(X)‖, the exponent is the slope of log r of a layer against log r of the layer before, from "
            f"layer {FIRST_FITTED} on, one value per random network. "
            f"Reproduced if the 95% interval of the mean lies within {TREBLES[0]} to {TREBLES[1]}, not reproduced if "
            f"it lies outside, and with fewer than {FEWEST} networks not decidable.",
            trebles,
        ),
        Rule(
            Claim("skips", "Skip connections prevent the collapse.", "section on mechanisms that counteract it"),
            "Networks with LayerNorm after each sublayer and without mask, as in BERT. Where attention alone ends "
            f"below {COLLAPSED:g} (95% upper limit of the geometric mean of ‖res‖/‖X‖ after the last layer): "
            f"reproduced if attention with skips, in the deepest networks, ends above {HEALTHY:g} (lower limit), not "
            f"reproduced if it ends below {COLLAPSED:g} too (upper limit); between the two it is slowed, and whether "
            "it is prevented is not decidable.",
            skips_prevent,
        ),
        Rule(
            Claim("mlps", "MLPs slow the collapse down.", "section on mechanisms that counteract it"),
            "The same networks without skips, in pairs that share their attention weights. Over the layers where "
            f"attention alone is still above {FLOOR:g} in all of them, the mean of log10 of the residual with MLPs "
            "over that without: reproduced if the 95% interval of its mean over networks is above 0, not reproduced "
            "if below.",
            mlps_slow,
        ),
        Rule(
            Claim(
                "bound",
                "Under attention alone the residual after L layers is at most (4γβH/√d)^((3^L−1)/2)·‖res(X)‖^(3^L).",
                "theorem on attention-only networks, recalled",
            ),
            "Reproduced if the residual exceeds the bound in no random network, after no layer and for no size of the "
            f"inputs, not reproduced if it does once, and with fewer than {FEWEST} networks not decidable.",
            stays_below,
        ),
        Rule(
            Claim(
                "trained",
                "In trained networks attention without skips and MLPs loses its rank, and with skips it does not.",
                "figures on BERT, ALBERT and XLNet with parts removed",
            ),
            "Trained encoders with LayerNorm, parts removed after training; relative residual after the last layer, "
            "geometric mean over 16 sequences of a network and then over networks. Reproduced if the 95% upper limit "
            f"of attention alone is below {INVISIBLE:g} and the lower limit of attention with skips above {HEALTHY:g}; "
            f"not reproduced if attention alone stays above (lower limit) or attention with skips below (upper limit); "
            f"with fewer than {FEWEST_TRAINED} networks not decidable.",
            skips_prevent_in_trained,
        ),
        Rule(
            Claim("trained-mlps", "In trained networks without skips MLPs slow the collapse down.", "same figures"),
            f"The same encoders without skips, by the same rule; with fewer than {FEWEST_TRAINED} not decidable.",
            mlps_slow_in_trained,
        ),
        Rule(
            Claim(
                "paths",
                "Sums of long paths predict worse than sums of short ones in a network that sorts.",
                "figure on sorting accuracy by path length",
            ),
            "Networks trained by the original's recipe; sums of 5 paths of one length, drawn several times. The mean "
            "accuracy at length 1 less that at the greatest length: reproduced if its 95% lower limit is above "
            f"{LOST:g}, not reproduced if its upper limit is below; with fewer than {FEWEST_TRAINED} networks not "
            "decidable.",
            partial(short_paths_predict, recipe=ORIGINAL),
        ),
        Rule(
            Claim(
                "paths-fresh",
                "The same holds for networks that sort well.",
                "the figure states 0.98 for the whole network",
            ),
            "The same rule for networks trained on examples that do not repeat, with learning rate 1e-3.",
            partial(short_paths_predict, recipe=FRESH),
        ),
    )
    Settings = RankCollapseSettings
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"sort_steps": 300, "fresh_steps": 300, "encoder_steps": 100},
        "cpu": {"networks": 100, "first_seed": 4000, "trained": 5},
        "paper": {
            "networks": 100, "first_seed": 2000, "tokens": 128, "width": 768, "heads": 12,
            "trained": 20, "encoder_width": 768, "encoder_steps": 100_000,
        },
    }  # fmt: skip
    expected_seconds: ClassVar[Mapping[str, float]] = {"quick": 60, "cpu": 240}
    libraries: ClassVar[Mapping[str, str]] = {"torch": "train", "scipy": "fit"}
    method = (
        "‖·‖ is the paper's norm √(‖·‖₁‖·‖_∞), res(X) is X less its mean row. For the law, attention alone (random "
        "normal weights of variance 1/fan-in, normal inputs) is followed beyond double precision: mean and residual "
        "are kept apart and the residual's size as a logarithm, which agrees with 900 digits. The bound has β = max "
        "‖W_QK‖₁‖W_V‖ over heads and layers and γ = √(n·max_j p_j), p the attention weights that all rows share. For "
        "skips and MLPs, ‖res‖/‖X‖ of the residual stream is read after every block of deepwide's own Transformer in "
        "double precision (Xavier weights, normal embeddings, no positions; networks of one seed share the weights "
        "that they have in common). The same is measured without LayerNorm and with it before the sublayers, with a "
        "causal mask, and with larger queries and keys. Trained networks: encoders with skips, MLPs and LayerNorm "
        "after each sublayer learn to sort 16 of 16 symbols; then skips, MLPs or both are removed, and everything "
        "else stays as it was trained, the LayerNorm of attention in all cases. Paths: encoders of attention and "
        "skips learn to sort 8 of 10 symbols, by the original's recipe (Adam, learning rate 1e-5, 65 epochs of 1000 "
        "examples) and with fresh examples at 1e-3. Then 5 or 20 paths of one length are drawn, each through one head "
        "or around each layer with a norm without parameters after each head, summed, normalised and read by the "
        "trained head."
    )
    differences = (
        "The original removes parts of BERT, ALBERT and XLNet; ours are small networks trained here, and random ones, "
        "as the theorem allows. Its sorting networks have a linear layer after the embeddings, dropout 0.1 and other "
        "initial weights (values and outputs uniform to ±1/√48 instead of normal with 0.02 and 0.02/√6); its epochs "
        "have 34 batches, ours 33.3. The bound's formula is recalled, not confirmed from the paper, and its γ is our "
        "reconstruction. The first rule was replaced after an early run with preset quick: it fitted log(−log r) "
        "against the layer, which takes c for 1, measured 3.118 (3.116 to 3.121) on 20 networks and said not "
        "reproduced. That number is still measured (the growth of log r per layer). The rules on skips and MLPs are "
        "the second ones: the first judged skips after 12 layers, where the residual was 0.35 and still falling, and "
        "MLPs at the last layer alone, where networks differ most. All present rules were fixed before the run with "
        "preset cpu, whose networks have seeds that no run before it had."
    )

    def sweeps(self, settings: RankCollapseSettings) -> Mapping[str, Mapping[str, Any]]:
        if not settings.trained:
            return {}
        seeds = list(range(settings.first_seed, settings.first_seed + settings.trained))
        post = {"norm_place": "post", "embedding_norm": True, "tied": False}
        sorts = post | {"depth": settings.sort_depth, "width": 48, "heads": 2, "ff_width": 0, "head_bias": True}
        deep = post | {"depth": settings.encoder_depth, "width": settings.encoder_width, "heads": 4}
        usual = {"optimiser": {"lr": 1e-3, "weight_decay": 0.0}, "evaluation": {"sequences": 200}}
        runs: dict[str, dict[str, Any]] = {
            ORIGINAL: {
                "task": {"name": "sorting", "examples": 1000}, "model": sorts, "batch": 30,
                "steps": settings.sort_steps, "evaluation": {"sequences": 200},
                "optimiser": {"lr": 1e-5, "beta2": 0.999, "weight_decay": 0.0, "clip": 0.0},
                "schedule": {"kind": "constant", "warmup": 0, "cooldown": 0},
            },
            FRESH: usual | {"task": {"name": "sorting"}, "model": sorts, "batch": 30, "steps": settings.fresh_steps},
            ENCODERS: usual | {
                "task": {"name": "sorting", "length": 16, "symbols": 16}, "model": deep, "batch": 16,
                "steps": settings.encoder_steps, "schedule": {"warmup": settings.encoder_steps // 8},
            },
        }  # fmt: skip
        return {name.replace(" ", "-"): {"seeds": seeds, "run": run} for name, run in runs.items()}

    def measure(self, settings: RankCollapseSettings, workplace: Workplace) -> Measured:
        alone = "attention alone, beyond double precision"
        law_rows, exponents, growths = workplace.part(alone, lambda: _law(settings))
        scale_rows = workplace.part("attention alone, larger matrices", lambda: _scales(settings))
        bound_rows = workplace.part("attention alone, the bound", lambda: _bounds(settings))
        rows, summary, last = [], [], {}
        for norm, mask, weights in itertools.product(NORMS, ("none", "causal"), settings.weights):
            condition: dict[str, Any] = {"norm": norm, "mask": mask, "weights": weights}
            name = f"networks with LayerNorm {norm}, mask {mask}, queries and keys × {weights:g}"
            for network in NETWORKS:
                measure = partial(_curves, settings, network, **condition)
                curves = np.array(workplace.part(f"{name}: {network}", measure))
                by_layer = _by_layer(curves, {"network": network, **condition})
                rows += by_layer
                summary.append(_summary(by_layer))
                if condition == PAPER:
                    last[network] = curves
            if condition == PAPER:
                deepest = settings.model_copy(update={"depth": settings.deepest})
                measure = partial(_curves, deepest, NETWORKS[2], **condition)
                deep_curves = np.array(workplace.part(f"attention with skips, {settings.deepest} layers", measure))
        if not last:
            raise DeepwideError("weights must contain 1.0: the claims are judged on networks with unchanged weights.")
        numbers = {
            "networks": Interval(settings.networks),
            "exponent p of r ← c·rᵖ": mean_interval(exponents),
            **({"growth of log r per layer": mean_interval(growths)} if growths else {}),
            **{f"last relative residual, {name}": _geometric(curves[:, -1]) for name, curves in last.items()},
            DEEPEST: _geometric(deep_curves[:, -1]),
            "log10 of the residual with MLPs over that without": _gain(last[NETWORKS[0]], last[NETWORKS[1]]),
            "largest log10 of residual over bound": Interval(max(row["largest_log10_ratio"] for row in bound_rows)),
        }
        surgery_rows, surgery_numbers = _surgery(workplace)
        path_rows, path_numbers = _paths(settings, workplace)
        tables = {
            "conditions": summary, "law": law_rows, "bound": bound_rows, "scales": scale_rows,
            "paths": path_rows, "trained": surgery_rows, "layers": rows,
        }  # fmt: skip
        notes = _caveats(summary, scale_rows, bound_rows)
        return Measured(numbers=numbers | surgery_numbers | path_numbers, tables=tables, notes=notes)

    def figures(self, measured: Measured) -> Mapping[str, Any]:
        from deepwide.figures import layer_chart, path_chart

        titles = {"post": "LayerNorm after", "none": "no LayerNorm", "pre": "LayerNorm before"}
        rows = [
            row | {"panel": titles[row["norm"]]}
            for row in measured.table("layers")
            if row["mask"] == "none" and row["weights"] == 1.0
        ]
        title = "Random networks: how far the rows of a layer's output differ"
        below = "|res(X)| / |X|, geometric mean and 95% interval over networks; rounding errors begin at 1e-15"
        charts = {"residual": layer_chart(rows, "relative_residual", title, below, floor=RESOLUTION)}
        if trained := measured.table("trained"):
            title = "Trained networks with parts removed: how far the rows of a layer's output differ"
            charts["trained"] = layer_chart(trained, "relative_residual", title, below, panels="kind", floor=RESOLUTION)
        if paths := measured.table("paths"):
            charts["paths"] = path_chart(
                [row for row in paths if row["paths"] == PATHS[0]], PUBLISHED, "Sorting: accuracy of paths by length",
                f"sums of {PATHS[0]} paths, mean and 95% interval over networks; dashed: the whole network",
            )  # fmt: skip
        return charts


def _law(settings: RankCollapseSettings) -> tuple[Rows, list[float], list[float]]:
    """Log residuals by layer under attention alone; each network's exponent, and its growth if c were 1."""
    logs = np.array(
        [
            [residual.log_norm for residual in attention_collapse(x_ND, layers)]
            for x_ND, layers in (_attention_only(settings, seed, 1.0) for seed in _seeds(settings))
        ]
    )
    layers = np.arange(FIRST_FITTED, settings.attention_depth + 1)
    if len(layers) < 3:
        raise DeepwideError(
            f"attention_depth must be at least {FIRST_FITTED + 2}: the exponent is fitted from layer {FIRST_FITTED}."
        )
    exponents = [float(np.polyfit(curve[layers[:-1]], curve[layers[1:]], 1)[0]) for curve in logs]
    collapsing = [curve for curve in logs if (curve[layers] < 0).all()]
    growths = [math.exp(float(np.polyfit(layers, np.log(-curve[layers]), 1)[0])) for curve in collapsing]
    rows = [
        {
            "layer": layer,
            "log10_residual": float(logs[:, layer].mean() / math.log(10)),
            "growth_from_layer_before": float((logs[:, layer] / logs[:, layer - 1]).mean()) if layer > 1 else None,
        }
        for layer in range(settings.attention_depth + 1)
    ]
    return rows, exponents, growths


def _bounds(settings: RankCollapseSettings) -> Rows:
    """Residual and bound under attention alone, by the size of the inputs and the layer."""
    rows = []
    for size in settings.inputs:
        networks = [_attention_only(settings, seed, 1.0) for seed in _seeds(settings)]
        logs = [[r.log_norm for r in attention_collapse(size * x_ND, layers)] for x_ND, layers in networks]
        measured = np.array(logs) / math.log(10)
        bound = np.array([collapse_bound(size * x_ND, layers) for x_ND, layers in networks]) / math.log(10)
        rows += [
            {
                "inputs": size,
                "layer": layer,
                "log10_residual": float(measured[:, layer].mean()),
                "log10_bound": float(bound[:, layer].mean()),
                "largest_log10_ratio": float((measured - bound)[:, layer].max()),
            }
            for layer in range(1, settings.attention_depth + 1)
        ]
    return rows


def _finished(workplace: Workplace, kind: str) -> list[RunRecord]:
    """The runs of a sweep that were trained to their end."""
    folder = workplace.runs.get(kind.replace(" ", "-"))
    return [run for run in read_runs(folder) if run.status == "done"] if folder else []


def _surgery(workplace: Workplace) -> tuple[Rows, dict[str, Interval]]:
    """Residuals by layer of trained networks with parts removed, and what the rules ask of encoders."""
    runs = _finished(workplace, ENCODERS)
    numbers = {"trained encoders": Interval(len(runs))}
    if not runs:
        return [], numbers
    curves: dict[str, list[Any]] = {name: [] for name in NETWORKS}
    for run in runs:
        part = workplace.part(f"trained encoders with parts removed, run {run.id}", partial(_without_parts, run))
        for name, each in curves.items():
            each.append(part[name])
    by_network = {name: np.array(each) for name, each in curves.items()}
    rows = [row for name, each in by_network.items() for row in _by_layer(each, {"kind": "trained", "network": name})]
    numbers["accuracy of trained encoders"] = mean_interval([float(run.result["accuracy"]) for run in runs])
    numbers |= {f"{LAST_TRAINED}{name}": _geometric(each[:, -1]) for name, each in by_network.items()}
    numbers[GAIN_TRAINED] = _gain(by_network[NETWORKS[0]], by_network[NETWORKS[1]])
    return rows, numbers


def _without_parts(run: RunRecord) -> dict[str, list[float]]:
    """The relative residual by layer of a trained network with skips, MLPs or both removed."""
    from deepwide.training import resolve, task_of, trained_model

    model = trained_model(run.path).double()
    [batch, *_] = task_of(resolve(run.config)).evaluation(SEQUENCES, SEQUENCES)
    curves: dict[str, list[float]] = {}
    for name in NETWORKS:
        rest = remove_parts(model, skips="skip" not in name, feed_forward="MLP" not in name)
        residuals = np.maximum(stream_residuals(rest, batch.tokens_BT), RESOLUTION)
        curves[name] = np.exp(np.log(residuals).mean(0)).tolist()
    return curves


def _paths(settings: RankCollapseSettings, workplace: Workplace) -> tuple[Rows, dict[str, Interval]]:
    """The accuracy of sums of paths by their length, and how much long ones lose against short ones."""
    rows: Rows = []
    numbers: dict[str, Interval] = {}
    for recipe in (ORIGINAL, FRESH):
        runs = _finished(workplace, recipe)
        numbers[f"{SORTED}{recipe}"] = Interval(len(runs))
        accuracies: dict[int, list[list[float]]] = {number: [] for number in PATHS}
        whole = []
        for run in runs:
            measure = partial(_path_accuracies, run, settings)
            by_number, of_run = workplace.part(f"paths of sorting networks, {recipe}, run {run.id}", measure)
            for number, by_length in zip(PATHS, by_number, strict=True):
                accuracies[number].append(by_length)
            whole.append(of_run)
        if not runs:
            continue
        of_all = mean_interval(whole)
        for number, by_network in accuracies.items():
            for length, values in enumerate(zip(*by_network, strict=True)):
                mean = mean_interval(values)
                there = count_paths(settings.sort_depth, 2, length)
                rows.append(
                    {"recipe": recipe, "paths": number, "length": length, "paths_of_this_length": there,
                     **interval_row("accuracy", mean), "whole_network": of_all.value}
                )  # fmt: skip
        numbers[f"accuracy of the whole network, {recipe}"] = of_all
        numbers[f"{DROP}{recipe}"] = mean_interval([values[1] - values[-1] for values in accuracies[PATHS[0]]])
    return rows, numbers


def _path_accuracies(run: RunRecord, settings: RankCollapseSettings) -> tuple[list[list[float]], float]:
    """A sorting network's accuracy by sums of paths, for each number of them and by length, and as a whole."""
    from deepwide.training import resolve, task_of, trained_model

    model, config = trained_model(run.path), resolve(run.config)
    [batch, *_] = task_of(config).evaluation(SORTED_EXAMPLES, SORTED_EXAMPLES)
    rng = np.random.default_rng([config.seed, 2103])
    examples = batch.tokens_BT, batch.targets
    by_number = [path_accuracies(model, *examples, number, settings.repeats, rng) for number in PATHS]
    return by_number, float((model(batch.tokens_BT).argmax(-1) == batch.targets).double().mean())


def _seeds(settings: RankCollapseSettings) -> range:
    return range(settings.first_seed, settings.first_seed + settings.networks)


def _caveats(summary: Rows, scale_rows: Rows, bound_rows: Rows) -> tuple[Note, ...]:
    """What the tables say beyond the claims."""
    by_network = {(row["norm"], row["mask"], row["weights"], row["network"]): row for row in summary}
    pairs = [(row, by_network[(*key[:3], NETWORKS[1])]) for key, row in by_network.items() if key[3] == NETWORKS[0]]
    slower = sum(with_mlp["after_3_layers"] > alone["after_3_layers"] for alone, with_mlp in pairs)
    masked = [row for row in summary if row["mask"] == "causal" and row["network"] == NETWORKS[0]]
    collapsed = sum(row["collapsed_at_layer"] is not None for row in masked)
    shares = ", ".join(f"{row['collapsed']} of {row['networks']} at scale {row['scale']:g}" for row in scale_rows)
    bounds = {(row["inputs"], row["layer"]): row["log10_bound"] for row in bound_rows}
    falling = sorted(size for size, layer in bounds if layer == 2 and bounds[size, 2] < bounds[size, 1])
    sizes = ", ".join(f"{size:g}" for size in falling) or "none"
    texts = {
        "mlps": f"Without skips, MLPs leave a larger residual after 3 layers in {slower} of {len(pairs)} conditions "
        "(norm, mask, weights), and a smaller one in the others",
        "mask": f"Under a causal mask attention alone falls below {COLLAPSED:g} within the depth in {collapsed} of "
        f"{len(masked)} conditions",
        "scales": f"Attention alone with all matrices enlarged falls below {COLLAPSED:g} in {shares}",
        "bound": f"The bound falls with depth, and so says something, only for inputs of size {sizes} of those tried",
    }
    return tuple(Note.of(code, text) for code, text in texts.items())


def _scales(settings: RankCollapseSettings) -> Rows:
    """How many networks of attention alone have collapsed at the end, by the size of their weights."""
    rows = []
    for scale in settings.scales:
        ends = []
        for seed in _seeds(settings):
            x_ND, layers = _attention_only(settings, seed, scale)
            ends.append(attention_collapse(x_ND, layers)[-1].log_relative)
        collapsed = sum(end < math.log(COLLAPSED) for end in ends)
        median = float(np.median(ends) / math.log(10))
        row = {"scale": scale, "networks": len(ends), "collapsed": collapsed, "median_log10_relative_residual": median}
        rows.append(row)
    return rows


def _attention_only(settings: RankCollapseSettings, seed: int, scale: float) -> tuple[Any, Any]:
    rng = np.random.default_rng([seed, 2103])
    x_ND = rng.normal(size=(settings.tokens, settings.width))
    return x_ND, random_layers(settings.attention_depth, settings.width, settings.heads, rng, scale)


def _curves(
    settings: RankCollapseSettings, network: Network, norm: str, mask: str, weights: float
) -> list[list[float]]:
    """The relative residual by layer, one row per random network of our own Transformer."""
    import torch

    from deepwide.model import Architecture, Transformer, generator_for

    design = Architecture.of(
        depth=settings.depth, width=settings.width, heads=settings.heads, vocab=settings.tokens,
        context=settings.tokens, kind="encoder" if mask == "none" else "decoder", positions="none",
        norm="none" if norm == "none" else "layernorm", norm_place="post" if norm == "post" else "pre",
        final_norm=False, residual="plain" if "skip" in network else "none",
        ff_width=4 * settings.width if "MLP" in network else 0, initialisation="xavier",
    )  # fmt: skip
    curves = []
    for seed in _seeds(settings):
        model = Transformer(design, seed).double()
        with torch.no_grad():
            model.embedding.weight *= math.sqrt(settings.width)  # entries of size 1
            for block in model.blocks:
                block.attention.qkv.weight[: 2 * settings.width] *= weights
        tokens = torch.randperm(settings.tokens, generator=generator_for(seed, "rank-collapse/tokens"))
        curves.append(stream_residuals(model, tokens[None])[0].tolist())
    return curves


def _by_layer(curves: Any, labels: Mapping[str, Any]) -> Rows:
    means = [_geometric(column) for column in curves.T]
    return [{**labels, "layer": layer, **interval_row("relative_residual", mean)} for layer, mean in enumerate(means)]


def _summary(by_layer: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One line of the table of conditions: where a network ends, and after how many layers it has collapsed."""
    labels = {name: by_layer[0][name] for name in ("norm", "mask", "weights", "network")}
    collapsed = [row["layer"] for row in by_layer if row["relative_residual"] < COLLAPSED]
    return {
        **labels,
        "after_3_layers": by_layer[min(3, len(by_layer) - 1)]["relative_residual"],
        "last": by_layer[-1]["relative_residual"],
        "collapsed_at_layer": collapsed[0] if collapsed else None,
    }


def _gain(without: Any, with_mlp: Any) -> Interval:
    """log10 of the residual with MLPs over that without, mean over the layers that double precision measures."""
    layers = [layer for layer in range(1, without.shape[1]) if (without[:, : layer + 1] > FLOOR).all()]
    ratios = np.log10(np.maximum(with_mlp[:, layers], RESOLUTION) / without[:, layers])
    return mean_interval([float(ratio) for ratio in ratios.mean(1)])


def _geometric(values: Any) -> Interval:
    return geometric_interval([max(float(value), RESOLUTION) for value in values])
