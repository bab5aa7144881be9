"""Does attention alone lose rank doubly exponentially with depth, and what prevents it? (Dong et al. 2021)"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, get_args

import numpy as np
from pydantic import Field

from deepwide.answers import Interval, Note
from deepwide.errors import DeepwideError
from deepwide.probes import attention_collapse, random_layers, stream_residuals
from deepwide.settings import Natural, Part, Positive
from deepwide.studies.estimates import geometric_interval, mean_interval
from deepwide.studies.study import (
    NOT_DECIDABLE,
    NOT_REPRODUCED,
    REPRODUCED,
    Claim,
    Measured,
    Rule,
    Ruling,
    Source,
    Study,
    Workplace,
)

# What the verdicts hang on. Written before the first run; part of the rules' hash.
TREBLES = (2.97, 3.03)  # an exponent within 1% of 3 counts as 3
COLLAPSED = 1e-6  # a relative residual below it is collapsed,
HEALTHY = 0.1  # above it, after as many layers as BERT's 12, it is not
FEWEST = 10  # networks without which nothing is decided

FLOOR = 1e-12  # double precision measures relative residuals above it without rounding errors that matter
RESOLUTION = 1e-16  # of double precision: smaller relative residuals, 0 among them, are rounding and count as this
FIRST_FITTED = 3  # the layer from which the growth is fitted: before it, attention is far from its limit
Network = Literal["attention", "attention + MLP", "attention + skip", "attention + skip + MLP"]
NETWORKS: tuple[Network, ...] = get_args(Network)
NORMS = ("post", "none", "pre")
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
    alone, skip = (measured.number(f"last relative residual, {name}") for name in (NETWORKS[0], NETWORKS[2]))
    if skip.low is None or skip.high is None or alone.high is None or measured.number("networks").value < FEWEST:
        return Ruling(NOT_DECIDABLE, skip, (_few(),))
    if alone.high > COLLAPSED:
        return Ruling(NOT_DECIDABLE, skip, (Note.of("no_collapse", "attention alone did not collapse here"),))
    if skip.low > HEALTHY:
        return Ruling(REPRODUCED, skip)
    return Ruling(NOT_REPRODUCED if skip.high < HEALTHY else NOT_DECIDABLE, skip)


def mlps_slow(measured: Measured) -> Ruling:
    gain = measured.number("log10 of the residual with MLPs over that without")
    if gain.low is None or gain.high is None or measured.number("networks").value < FEWEST:
        return Ruling(NOT_DECIDABLE, gain, (_few(),))
    if gain.low > 0:
        return Ruling(REPRODUCED, gain)
    return Ruling(NOT_REPRODUCED if gain.high < 0 else NOT_DECIDABLE, gain)


def _few() -> Note:
    return Note.of("few_networks", "too few networks for a verdict", fewest=FEWEST)


class RankCollapseSettings(Part):
    """How many networks of which size."""

    networks: Positive = 20  # random networks of each kind
    first_seed: Natural = 0
    tokens: Annotated[int, Field(ge=2, le=4096)] = 32
    width: Positive = 64
    heads: Positive = 4
    depth: Positive = 12  # of the networks with skips, MLPs, norms and masks
    attention_depth: Positive = 9  # of attention alone, followed beyond double precision
    weights: tuple[float, ...] = (1.0, 4.0)  # queries and keys are multiplied by this
    scales: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0)  # all matrices of attention alone are multiplied by this


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
            f"reproduced if attention with skips ends above {HEALTHY:g} (lower limit), not reproduced if "
            "below (upper limit).",
            skips_prevent,
        ),
        Rule(
            Claim("mlps", "MLPs slow the collapse down.", "section on mechanisms that counteract it"),
            "The same networks without skips, in pairs that share their attention weights. At the last layer where "
            f"attention alone is still above {FLOOR:g} in all of them, the mean of log10 of the residual with MLPs "
            "over that without: reproduced if its 95% interval is above 0, not reproduced if below.",
            mlps_slow,
        ),
    )
    Settings = RankCollapseSettings
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {},
        "cpu": {"networks": 100, "first_seed": 1000},
        "paper": {"networks": 100, "first_seed": 2000, "tokens": 128, "width": 768, "heads": 12},
    }
    method = (
        "All networks are random; nothing is trained. ‖·‖ is the paper's norm √(‖·‖₁‖·‖_∞), res(X) is X less its mean "
        "row. For the law, attention alone (normal weights of variance 1/fan-in, normal inputs) is followed beyond "
        "double precision: mean and residual are kept apart and the residual's size as a logarithm, which agrees with "
        "900 digits. For skips and MLPs, ‖res‖/‖X‖ of the residual stream is read after every block of deepwide's own "
        "Transformer in double precision (Xavier weights, normal embeddings, no positions; networks of one seed share "
        "the weights that they have in common). The same is measured without LayerNorm and with it before the "
        "sublayers, with a causal mask, and with larger queries and keys."
    )
    differences = (
        "The original shows trained BERT, ALBERT and XLNet with parts removed; these networks are random, as the "
        "theorem allows. Not part of this study: trained networks, the bound's constant (it is not confirmed from the "
        "paper), and the accuracy of paths by their length on the sorting task. The first rule was replaced after a "
        "run with preset quick: it fitted log(−log r) against the layer, which takes c for 1, measured 3.118 (3.116 to "
        "3.121) on 20 networks and said not reproduced. That number is still measured (the growth of log r per layer). "
        "The present rule was fixed before the run with preset cpu, whose networks are others."
    )

    def measure(self, settings: RankCollapseSettings, workplace: Workplace) -> Measured:
        workplace.report("attention alone, beyond double precision")
        law_rows, exponents, growths = _law(settings)
        scale_rows = _scales(settings)
        rows, summary, last = [], [], {}
        for norm, mask, weights in itertools.product(NORMS, ("none", "causal"), settings.weights):
            if workplace.stop():
                raise DeepwideError("the study was stopped while measuring: run it again, and it resumes.")
            workplace.report(f"networks with LayerNorm {norm}, mask {mask}, queries and keys × {weights:g}")
            condition: dict[str, Any] = {"norm": norm, "mask": mask, "weights": weights}
            for network in NETWORKS:
                curves = _curves(settings, network, **condition)
                by_layer = _by_layer(curves, {"network": network, **condition})
                rows += by_layer
                summary.append(_summary(by_layer))
                if condition == PAPER:
                    last[network] = curves
        if not last:
            raise DeepwideError("weights must contain 1.0: the claims are judged on networks with unchanged weights.")
        numbers = {
            "networks": Interval(settings.networks),
            "exponent p of r ← c·rᵖ": mean_interval(exponents),
            **({"growth of log r per layer": mean_interval(growths)} if growths else {}),
            **{f"last relative residual, {name}": _geometric(curves[:, -1]) for name, curves in last.items()},
            "log10 of the residual with MLPs over that without": _gain(last[NETWORKS[0]], last[NETWORKS[1]]),
        }
        tables = {"conditions": summary, "law": law_rows, "scales": scale_rows, "layers": rows}
        return Measured(numbers=numbers, tables=tables, notes=_caveats(summary, scale_rows))

    def figures(self, measured: Measured) -> Mapping[str, Any]:
        from deepwide.figures import layer_chart

        titles = {"post": "LayerNorm after", "none": "no LayerNorm", "pre": "LayerNorm before"}
        rows = [
            row | {"panel": titles[row["norm"]]}
            for row in measured.table("layers")
            if row["mask"] == "none" and row["weights"] == 1.0
        ]
        title = "Random networks: how far the rows of a layer's output differ"
        below = "‖res(X)‖ / ‖X‖, geometric mean and 95% interval over networks; rounding errors begin at 1e-15"
        return {"residual": layer_chart(rows, "relative_residual", title, below, floor=RESOLUTION)}


def _law(settings: RankCollapseSettings) -> tuple[list[dict[str, Any]], list[float], list[float]]:
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


def _seeds(settings: RankCollapseSettings) -> range:
    return range(settings.first_seed, settings.first_seed + settings.networks)


def _caveats(summary: list[dict[str, Any]], scale_rows: list[dict[str, Any]]) -> tuple[Note, ...]:
    """What the tables say beyond the claims."""
    by_network = {(row["norm"], row["mask"], row["weights"], row["network"]): row for row in summary}
    pairs = [(row, by_network[(*key[:3], NETWORKS[1])]) for key, row in by_network.items() if key[3] == NETWORKS[0]]
    slower = sum(with_mlp["after_3_layers"] > alone["after_3_layers"] for alone, with_mlp in pairs)
    masked = [row for row in summary if row["mask"] == "causal" and row["network"] == NETWORKS[0]]
    collapsed = sum(row["collapsed_at_layer"] is not None for row in masked)
    shares = ", ".join(f"{row['collapsed']} of {row['networks']} at scale {row['scale']:g}" for row in scale_rows)
    return (
        Note.of(
            "mlps",
            f"Without skips, MLPs leave a larger residual after 3 layers in {slower} of {len(pairs)} conditions (norm, "
            "mask, weights), and a smaller one in the others",
            slower=slower,
            conditions=len(pairs),
        ),
        Note.of(
            "mask",
            f"Under a causal mask attention alone falls below {COLLAPSED:g} within the depth in {collapsed} of "
            f"{len(masked)} conditions",
            collapsed=collapsed,
            conditions=len(masked),
        ),
        Note.of("scales", f"Attention alone with all matrices enlarged falls below {COLLAPSED:g} in {shares}"),
    )


def _scales(settings: RankCollapseSettings) -> list[dict[str, Any]]:
    """How many networks of attention alone have collapsed at the end, by the size of their weights."""
    rows = []
    for scale in settings.scales:
        ends = []
        for seed in _seeds(settings):
            x_ND, layers = _attention_only(settings, seed, scale)
            ends.append(attention_collapse(x_ND, layers)[-1].log_relative)
        collapsed = sum(end < math.log(COLLAPSED) for end in ends)
        rows.append(
            {
                "scale": scale,
                "networks": len(ends),
                "collapsed": collapsed,
                "median_log10_relative_residual": float(np.median(ends) / math.log(10)),
            }
        )
    return rows


def _attention_only(settings: RankCollapseSettings, seed: int, scale: float) -> tuple[Any, Any]:
    rng = np.random.default_rng([seed, 2103])
    x_ND = rng.normal(size=(settings.tokens, settings.width))
    return x_ND, random_layers(settings.attention_depth, settings.width, settings.heads, rng, scale)


def _curves(settings: RankCollapseSettings, network: Network, norm: str, mask: str, weights: float) -> Any:
    """The relative residual by layer, one row per random network of our own Transformer."""
    import torch

    from deepwide.model import Architecture, Transformer, generator_for

    design = Architecture.of(
        depth=settings.depth,
        width=settings.width,
        heads=settings.heads,
        vocab=settings.tokens,
        context=settings.tokens,
        kind="encoder" if mask == "none" else "decoder",
        positions="none",
        norm="none" if norm == "none" else "layernorm",
        norm_place="post" if norm == "post" else "pre",
        final_norm=False,
        residual="plain" if "skip" in network else "none",
        ff_width=4 * settings.width if "MLP" in network else 0,
        initialisation="xavier",
    )
    curves = []
    for seed in _seeds(settings):
        model = Transformer(design, seed).double()
        with torch.no_grad():
            model.embedding.weight *= math.sqrt(settings.width)  # entries of size 1
            for block in model.blocks:
                block.attention.qkv.weight[: 2 * settings.width] *= weights
        tokens = torch.randperm(settings.tokens, generator=generator_for(seed, "rank-collapse/tokens"))
        curves.append(stream_residuals(model, tokens[None])[0])
    return np.array(curves)


def _by_layer(curves: Any, labels: Mapping[str, Any]) -> list[dict[str, Any]]:
    means = [_geometric(column) for column in curves.T]
    return [
        {**labels, "layer": layer, "relative_residual": mean.value, "low": mean.low, "high": mean.high}
        for layer, mean in enumerate(means)
    ]


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
    """log10 of the residual with MLPs over that without, at the last layer that double precision still measures."""
    usable = [layer for layer in range(without.shape[1]) if (without[:, : layer + 1] > FLOOR).all()]
    ratios = np.log10(np.maximum(with_mlp[:, usable[-1]], RESOLUTION) / without[:, usable[-1]])
    return mean_interval([float(ratio) for ratio in ratios])


def _geometric(values: Any) -> Interval:
    return geometric_interval([max(float(value), RESOLUTION) for value in values])
