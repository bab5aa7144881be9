"""Which initialisation still trains at which depth and learning rate? (Liu et al. 2020, ADMIN, and its rivals)"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from deepwide.answers import Interval, Note
from deepwide.errors import DeepwideError
from deepwide.model import SCHEMES, Scheme, scheme_of
from deepwide.run import RunRecord, read_runs
from deepwide.settings import Part, Positive, Seeds
from deepwide.studies.estimates import log_slope, mean_interval
from deepwide.studies.rules import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Claim, Measured, Rule, Ruling
from deepwide.studies.study import Source, Study
from deepwide.studies.untrained import measure_untrained, profile_rows, profiles
from deepwide.studies.workplace import Workplace

# What the verdicts hang on. Written before the run with preset cpu; part of the rules' hash.
BELOW = 0.75  # trained: the final validation loss is below this share of the loss of answers that see the position only
LINEAR = (0.9, 1.1)  # the exponent of ω² against the sublayer, and ...
PROPORTIONAL = (0.75, 1.25)  # ... that of post-LN's output change against depth, count as 1
SLOW = 0.5  # an exponent of pre-LN's output change below it counts as logarithmic: that of log N is about 0.3 here
FEWEST_SEEDS = 2  # of runs, without which nothing is decided, and ...
FEWEST_NETWORKS = 5  # ... of untrained networks
DEEP = 48  # layers from which a scheme's training counts as very deep

FIRST_FITTED = 10  # sublayer from which the exponent of ω² is fitted: ω₁ = 1 is given, not measured
MOVED = 1e-3  # the size of the moves whose output change is measured: small enough that it is quadratic
PROBED = 16  # sequences that untrained networks are measured on
TRAINED, STUCK, DIVERGED = "trained", "stuck", "diverged"


def admin_goes_deeper(measured: Measured) -> Ruling:
    by_depth = {
        depth: (_state(measured, "post-LN", depth), _state(measured, "ADMIN", depth)) for depth in _depths(measured)
    }
    if _too_few(measured) or not by_depth or by_depth[min(by_depth)] != (TRAINED, TRAINED):
        return Ruling(
            NOT_DECIDABLE, None, (Note.of("no_start", "the shallowest networks do not train, or seeds are too few"),)
        )
    beyond = [depth for depth, states in by_depth.items() if states == (STUCK, TRAINED)]
    if beyond:
        return Ruling(REPRODUCED, Interval(min(beyond)))
    trained = [depth for depth, (_, admin) in by_depth.items() if admin == TRAINED]
    default_too = all(by_depth[depth][0] == TRAINED for depth in trained)
    return Ruling(NOT_REPRODUCED if default_too else NOT_DECIDABLE, Interval(max(trained)))


def trains_deepest(measured: Measured, scheme: str) -> Ruling:
    depths = [depth for depth in _depths(measured) if _state(measured, scheme, depth) != ""]
    if _too_few(measured) or not depths or max(depths) < DEEP:
        return Ruling(NOT_DECIDABLE, None, (Note.of("shallow", f"no runs of {DEEP} layers or more", fewest=DEEP),))
    trained = [depth for depth in depths if _state(measured, scheme, depth) == TRAINED]
    reached = Interval(max(trained, default=0))
    state = _state(measured, scheme, max(depths))
    return Ruling({TRAINED: REPRODUCED, STUCK: NOT_REPRODUCED}.get(state, NOT_DECIDABLE), reached)


def needs_no_warmup(measured: Measured, schemes: tuple[str, ...]) -> Ruling:
    rows = [row for row in measured.table("cells") if row["warmup"] == 0]
    pairs = sorted({(row["scheme"], row["depth"]) for row in rows if row["scheme"] in schemes})
    with_warmup = [(scheme, depth) for scheme, depth in pairs if _state(measured, scheme, depth) == TRAINED]
    if _too_few(measured) or {scheme for scheme, _ in with_warmup} != set(schemes):
        return Ruling(
            NOT_DECIDABLE, None, (Note.of("no_pair", "a scheme was not trained both with warm-up and without"),)
        )
    states = [_state(measured, scheme, depth, warmup=False) for scheme, depth in with_warmup]
    share = Interval(states.count(TRAINED) / len(states))
    if all(state == TRAINED for state in states):
        return Ruling(REPRODUCED, share)
    return Ruling(NOT_REPRODUCED if STUCK in states else NOT_DECIDABLE, share)


def omega_is_linear(measured: Measured) -> Ruling:
    exponent = measured.number("exponent of ω² against the sublayer")
    return _within(measured, exponent, *LINEAR)


def amplifies(measured: Measured) -> Ruling:
    post, pre = (measured.number(f"exponent of the output change, {name}") for name in ("post-LN", "pre-LN"))
    ruling = _within(measured, post, *PROPORTIONAL)
    if ruling.outcome != REPRODUCED or pre.low is None or pre.high is None:
        return ruling
    if pre.high < SLOW:
        return ruling
    return Ruling(NOT_REPRODUCED if pre.low > SLOW else NOT_DECIDABLE, pre)


def _within(measured: Measured, value: Interval, low: float, high: float) -> Ruling:
    few = measured.number("untrained networks of each kind").value < FEWEST_NETWORKS
    if value.low is None or value.high is None or few:
        return Ruling(NOT_DECIDABLE, value, (Note.of("few_networks", "too few networks for a verdict"),))
    if low <= value.low and value.high <= high:
        return Ruling(REPRODUCED, value)
    return Ruling(NOT_REPRODUCED if value.high < low or value.low > high else NOT_DECIDABLE, value)


def _depths(measured: Measured) -> list[int]:
    return sorted({row["depth"] for row in measured.table("cells") if row["warmup"]})


def _too_few(measured: Measured) -> bool:
    return measured.number("seeds").value < FEWEST_SEEDS


def _state(measured: Measured, scheme: str, depth: int, *, warmup: bool = True) -> str:
    """Trained: all seeds at one rate at least; stuck: no seed at any rate, diverged ones among them; else mixed."""
    rows = [
        row
        for row in measured.table("cells")
        if (row["scheme"], row["depth"], bool(row["warmup"])) == (scheme, depth, warmup)
    ]
    if not rows:
        return ""
    by_rate = [[row["state"] == TRAINED for row in rows if row["lr"] == lr] for lr in {row["lr"] for row in rows}]
    if any(all(seeds) for seeds in by_rate):
        return TRAINED
    return "mixed" if any(any(seeds) for seeds in by_rate) else STUCK


class Cells(Part):
    """A part of the map: one depth, the schemes and rates trained there."""

    depth: Positive
    rates: Annotated[tuple[Annotated[float, Field(gt=0, le=1)], ...], Field(min_length=1)]
    schemes: Annotated[tuple[Scheme, ...], Field(min_length=1)] = tuple(SCHEMES)
    warmup: bool = True
    encoder_depth: Positive | None = None  # of encoder-decoders

    @property
    def name(self) -> str:
        rates = "-".join(f"{rate:g}" for rate in self.rates)
        return f"depth-{self.depth}" + ("" if self.warmup else "-no-warmup") + f"-rate-{rates}"


class DeepInitSettings(Part):
    """Which cells of the map, how long each run, and how many untrained networks."""

    cells: Annotated[tuple[Cells, ...], Field(min_length=1)]  # parts of the map: depth, rates, schemes, warmup
    seeds: Seeds = (0, 1)
    width: Positive = 32
    heads: Positive = 2
    length: Positive = 8  # tokens of a sequence to be sorted
    symbols: Annotated[int, Field(ge=2)] = 10
    batch: Positive = 32
    steps: Annotated[int, Field(ge=10)] = 60
    warmup: Annotated[float, Field(gt=0, lt=1)] = 0.2  # share of the steps with a growing rate
    task: Literal["sorting", "reversing"] = "sorting"  # sorting, or reversing for encoder-decoders
    networks: Positive = 5  # untrained networks of each kind
    probe_depths: Annotated[tuple[Positive, ...], Field(min_length=2)] = (6, 12, 24, 48, 96)  # of untrained networks

    @model_validator(mode="after")
    def _cells_differ(self) -> Self:
        names = [cells.name for cells in self.cells]
        if len(set(names)) < len(names):
            raise ValueError("two entries of cells have the same depth, rates and warm-up: merge them")
        return self


NO_WARMUP: tuple[Scheme, ...] = ("T-Fixup", "ReZero", "pre-LN")
QUICK: tuple[Scheme, ...] = ("post-LN", "ADMIN", "DeepNorm", "T-Fixup", "pre-LN")
TRANSLATED: tuple[Scheme, ...] = ("post-LN", "ADMIN", "pre-LN", "DeepNorm", "ReZero", "T-Fixup")


class DeepInit(Study):
    """The map scheme × depth × learning rate, and what can be measured without training."""

    name = "deep-init"
    question = "Which initialisation still trains at which depth and learning rate?"
    source = Source(
        "Liu, Liu, Gao, Chen, Han 2020, Understanding the difficulty of training transformers (ADMIN), with DeepNorm "
        "(Wang et al. 2022), ReZero (Bachlechner et al. 2020), T-Fixup (Huang et al. 2020) and others.",
        "https://arxiv.org/abs/2004.08249",
    )
    rules = (
        Rule(
            Claim(
                "deeper",
                "Default post-LN fails at a depth where ADMIN trains, and both train when shallow.",
                "En-De, 6L-6L: 27.6 and 27.7 BLEU; 60L-12L: diverges and 30.1 (Liu et al. 2020b)",
            ),
            f"A run is trained if its final validation loss is below {BELOW:g} of the loss of the best answer that "
            "sees only the position, diverged if the engine stopped it, else stuck. A scheme trains at a depth if at "
            "one rate at least all seeds are trained; it fails if no seed is at any rate. Reproduced if ADMIN trains "
            "and post-LN fails at some depth, the least of which is measured; not reproduced if post-LN trains "
            "wherever ADMIN does; not decidable if one of them does not train at the least depth, or with fewer than "
            f"{FEWEST_SEEDS} seeds.",
            admin_goes_deeper,
            "least depth at which ADMIN trains and post-LN fails, layers",
        ),
        *(
            Rule(
                Claim(f"deepest-{scheme.lower()}", f"{scheme} trains very deep networks.", where),
                f"Reproduced if {scheme} trains (see the first rule) at the greatest depth at which it was run, "
                f"{DEEP} layers or more; not reproduced if it fails there. Measured is the greatest depth at which it "
                "trains, 0 for none.",
                partial(trains_deepest, scheme=scheme),
                "greatest depth that trains, layers",
            )
            for scheme, where in (
                ("ADMIN", "100L-100L in the authors' repository"),
                ("DeepNorm", "Wang et al. 2022, 1000 layers"),
                ("ReZero", "Bachlechner et al. 2020, more than 100 layers (recalled)"),
                ("T-Fixup", "Huang et al. 2020, very deep encoders and decoders (recalled)"),
            )
        ),
        Rule(
            Claim(
                "warmup",
                "T-Fixup, ReZero and pre-LN train without learning-rate warm-up.",
                "Huang et al. 2020; Bachlechner et al. 2020 (recalled); Xiong et al. 2020",
            ),
            "At the depths run without warm-up, where the scheme trains with it: reproduced if all three train "
            "without, not reproduced if one fails. Measured is the share that trains.",
            partial(needs_no_warmup, schemes=NO_WARMUP),
            "share of schemes and depths that train without warm-up",
        ),
        Rule(
            Claim(
                "omega", "ADMIN's profiled ω² grows linearly with depth.", "shipped 100-layer profile: exponent 0.98"
            ),
            f"The slope of log ω² against log i from sublayer {FIRST_FITTED} to the last of the deepest network, one "
            f"value per network. Reproduced if the 95% interval of the mean lies within {LINEAR[0]:g} to "
            f"{LINEAR[1]:g}, not reproduced if outside, and with fewer than {FEWEST_NETWORKS} networks not decidable.",
            omega_is_linear,
        ),
        Rule(
            Claim(
                "amplification",
                "Under random changes of the weights, the output change of post-LN grows like N, that of pre-LN like "
                "log N.",
                "O(n) and O(log n) of admin-torch for post-LN and ADMIN; O(log N) for pre-LN is recalled",
            ),
            "The slope of log output change against log depth, one value per seed. Reproduced if the 95% interval of "
            f"post-LN's mean lies within {PROPORTIONAL[0]:g} to {PROPORTIONAL[1]:g} and that of pre-LN's below "
            f"{SLOW:g}; not reproduced if one lies outside.",
            amplifies,
        ),
    )
    libraries: ClassVar[Mapping[str, str]] = {"torch": "train", "scipy": "fit"}
    Settings = DeepInitSettings
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {
            "cells": [{"depth": depth, "rates": [4e-3], "schemes": QUICK} for depth in (6, 24)],
            "seeds": [0], "steps": 50, "networks": 3, "probe_depths": [6, 12, 24],
        },
        "cpu": {
            "cells": [
                *({"depth": depth, "rates": [1e-3, 4e-3]} for depth in (6, 24, 48)),
                {"depth": 48, "rates": [1e-3, 4e-3], "warmup": False, "schemes": ["post-LN", *NO_WARMUP]},
                {"depth": 96, "rates": [1e-3, 4e-3]},
            ],
            "seeds": [21, 22], "steps": 80,
        },
        "paper": {
            "cells": [
                {"depth": 6, "encoder_depth": 6, "rates": [1e-3], "schemes": TRANSLATED},
                {"depth": 12, "encoder_depth": 60, "rates": [1e-3], "schemes": TRANSLATED},
            ],
            "task": "reversing", "width": 512, "heads": 8, "length": 128, "symbols": 32_000, "batch": 512,
            "steps": 500_000, "warmup": 0.016, "networks": 5,
        },
    }  # fmt: skip
    method = (
        "One network per scheme, depth, rate and seed learns to sort: an encoder reads 8 tokens of 10 labels and gives "
        "at position i the i-th smallest. AdamW without decay, gradients clipped at 1, warm-up over a fifth of the "
        "steps, then a cosine. Without training, on a batch of the same task in float64: ADMIN's ω by sublayer, the "
        "output change (mean square of the difference between the normalised outputs before and after every matrix of "
        f"the blocks moved by {MOVED:g} of its own size, over {MOVED:g}²; random directions, or the sign of the "
        "gradient, which is Adam's first step), and the gradient's norm by layer."
    )
    differences = (
        "The originals translate with encoder-decoders of width 512 to 1024 for 100 epochs with RAdam, no clipping "
        "and dropout; here small encoders sort for seconds, so that only the start of training is tested: whether it "
        "begins, not how good the model becomes. What the originals call diverging is here stuck (no better than "
        "without reading the input) or diverged. Byte-level language modelling was tried first and dropped before the "
        "rules were written: in 100 steps, all that the machine allowed at 48 layers, neither post-LN nor ADMIN came "
        "below the unigram loss. Rates and steps were chosen on pilot runs of 12 and 48 layers (post-LN, pre-LN, "
        "ADMIN, T-Fixup; seed 0, batches twice as large); at 48 layers they showed post-LN stuck and ADMIN trained, so "
        "the first verdict was no surprise. A first run of 6 and 48 layers, 60 steps and seeds 1 and 2 was cut several "
        "times while it was under way, since the machine was busy; it left DeepNorm open. The published run has "
        "seeds that were never trained before, and its cells were fixed before it began. The rules were the same. "
        "T-Fixup's numbers are published for encoder-decoders; a single stack follows from the same condition. The "
        "preset paper has the original's depth, width and steps, and reverses sequences instead of translating the WMT "
        "corpora."
    )

    def sweeps(self, settings: DeepInitSettings) -> Mapping[str, Mapping[str, Any]]:
        """One sweep per entry of cells; a scheme is one value of `model`."""
        warmup = max(1, round(settings.warmup * settings.steps))
        return {
            cells.name: {
                "seeds": list(settings.seeds),
                "run": {
                    "task": {"name": settings.task, **_task_settings(settings)},
                    "batch": settings.batch,
                    "steps": settings.steps,
                    "optimiser": {"weight_decay": 0.0},
                    "schedule": {"warmup": warmup if cells.warmup else 0},
                    "evaluation": {"every": settings.steps, "sequences": 128},
                    "checkpoint_every": settings.steps,
                    "log_every": settings.steps,
                },
                "grid": {
                    "model": [_model(settings, scheme, cells.encoder_depth) for scheme in cells.schemes],
                    "depth": [cells.depth],
                    "width": [settings.width],
                    "lr": list(cells.rates),
                },
            }
            for cells in settings.cells
        }

    def measure(self, settings: DeepInitSettings, workplace: Workplace) -> Measured:
        from deepwide.tasks import make_task

        reference = make_task(settings.task, _task_settings(settings)).position_loss  # type: ignore[attr-defined]
        rows = [_row(run, reference) for cells in settings.cells for run in read_runs(workplace.runs[cells.name])]
        order = list(SCHEMES).index
        rows.sort(key=lambda row: (not row["warmup"], row["depth"], order(row["scheme"]), row["lr"], row["seed"]))
        build = partial(_network, settings)
        untrained = measure_untrained(build, tuple(SCHEMES), settings.probe_depths, settings.networks, MOVED, workplace)
        deepest = max(settings.probe_depths)
        omegas = profiles(lambda seed: build("ADMIN", deepest, seed)[0], settings.networks, workplace)
        fitted = [log_slope(range(FIRST_FITTED, len(p) + 1), [w**2 for w in p[FIRST_FITTED - 1 :]]) for p in omegas]
        numbers = {
            "seeds": Interval(len(settings.seeds)),
            "loss of answers that see the position only": Interval(reference),
            "untrained networks of each kind": Interval(settings.networks),
            "exponent of ω² against the sublayer": mean_interval(fitted),
            "growth of ω² per sublayer": mean_interval([(p[-1] ** 2 - p[0] ** 2) / (len(p) - 1) for p in omegas]),
            **{f"exponent of the output change, {name}": value for name, value in untrained.exponents().items()},
        }
        tables = {
            "map": _summary(rows),
            "cells": rows,
            "omega": profile_rows(omegas),
            "change": untrained.change_rows(),
            "gradients": untrained.gradients,
        }
        return Measured(numbers=numbers, tables=tables, notes=_advice(rows))

    def figures(self, measured: Measured) -> Mapping[str, Any]:
        from deepwide.figures import growth_chart, outcome_map

        return {
            "map": outcome_map(
                measured.table("map"),
                "Who trains: scheme, depth and learning rate",
                "final validation loss, mean over seeds; a run is trained below "
                f"{BELOW * measured.number('loss of answers that see the position only').value:.2f} nats",
            ),
            "omega": growth_chart(
                measured.table("omega"), "sublayer", "omega_squared", "ADMIN's profile: ω² by sublayer",
                "mean over networks; a straight line is linear growth", lines="source",
            ),
            "change": growth_chart(
                [row for row in measured.table("change") if row["move"] == "random"], "depth", "output_change",
                "How much the output moves when the weights do, before training",
                "mean squared change of the normalised output over the squared size of the move",
                lines="scheme", logarithmic=True,
            ),
        }  # fmt: skip


def _model(settings: DeepInitSettings, scheme: Scheme, encoder_depth: int | None = None) -> dict[str, Any]:
    model = {**SCHEMES[scheme], "heads": settings.heads, "base_width": settings.width}
    if scheme == "CompleteP":
        model["base_depth"] = min(cells.depth for cells in settings.cells)
    return model if encoder_depth is None else {**model, "encoder_depth": encoder_depth}


def _task_settings(settings: DeepInitSettings) -> dict[str, int]:
    return {"length": settings.length, "symbols": settings.symbols}


def _row(record: RunRecord, reference: float) -> dict[str, Any]:
    if record.status not in ("done", "diverged"):
        raise DeepwideError(f"the run {record.path} is {record.status}: {record.error or 'run the study again'}.")
    config, result = record.config, record.result
    loss = result.get("validation_loss") if record.status == "done" else None
    state = DIVERGED if loss is None else TRAINED if loss < BELOW * reference else STUCK
    return {
        "scheme": scheme_of(config["model"]),
        "depth": config["model"]["depth"],
        "lr": config["optimiser"]["lr"],
        "warmup": config["schedule"]["warmup"],
        "seed": config["seed"],
        "state": state,
        "validation_loss": loss,
        "step": result.get("step"),
        "run": record.id,
    }


def _summary(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per scheme, depth, rate and warm-up: how many seeds ended how, and their mean loss."""
    names = ("scheme", "depth", "lr", "warmup")
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    summary = []
    for key, members in groups.items():
        states = [row["state"] for row in members]
        losses = [row["validation_loss"] for row in members if row["validation_loss"] is not None]
        ends = {state: states.count(state) for state in (TRAINED, STUCK, DIVERGED)}
        state = states[0] if len(set(states)) == 1 else "seeds differ"
        mean = math.fsum(losses) / len(losses) if losses else None
        summary.append({**dict(zip(names, key, strict=True)), "state": state, **ends, "validation_loss": mean})
    return summary


def _advice(rows: Sequence[dict[str, Any]]) -> tuple[Note, ...]:
    """At each depth: the scheme and rate with the least mean loss, and the schemes that train at every rate."""
    notes = []
    warm = [row for row in _summary(rows) if row["warmup"]]
    for depth in sorted({row["depth"] for row in warm}):
        here = [row for row in warm if row["depth"] == depth]
        trained = [row for row in here if row["state"] == TRAINED]
        if not trained:
            notes.append(Note.of("advice", f"At {depth} layers nothing trains", depth=depth))
            continue
        best = min(trained, key=lambda row: row["validation_loss"])
        states = {s: {row["state"] for row in here if row["scheme"] == s} for s in SCHEMES}
        everywhere = [s for s in SCHEMES if states[s] == {TRAINED}]
        least = f"{best['validation_loss']:.3f}, of {best['scheme']} at rate {best['lr']:g}"
        text = f"At {depth} layers the least loss is {least}; trained at every rate: {', '.join(everywhere) or 'none'}"
        notes.append(Note.of("advice", text, depth=depth, scheme=best["scheme"], lr=best["lr"]))
    return tuple(notes)


def _network(settings: DeepInitSettings, scheme: Scheme, depth: int, seed: int) -> tuple[Any, Any, Any]:
    """An untrained network of the study's task in float64, profiled where it asks for it, and a batch."""
    from deepwide.model import Architecture, Transformer, profile
    from deepwide.tasks import make_task

    task = make_task("sorting", _task_settings(settings))
    batch = task.batch(0, PROBED, seed)
    choices = {**_model(settings, scheme), "depth": depth, "width": settings.width}
    if scheme == "CompleteP":
        choices["base_depth"] = min(settings.probe_depths)
    design = Architecture.of(vocab=task.vocab, context=task.context, kind=task.kind, head=task.head, **choices)
    model = Transformer(design, seed).double()
    profile(model, batch.tokens_BT)
    return model, batch.tokens_BT, batch.targets
