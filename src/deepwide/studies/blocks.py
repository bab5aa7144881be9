"""How deep must trained soft attention be to count alternating blocks? (Yang, Cadilhac & Chiang 2025)"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from deepwide.answers import Interval, Note
from deepwide.run import RunFolder, RunRecord
from deepwide.settings import Part, Positive, Seeds, Sizes
from deepwide.studies.estimates import interval_row, late_gain, mean_interval
from deepwide.studies.rules import NOT_DECIDABLE, NOT_REPRODUCED, REPRODUCED, Claim, Measured, Rule, Ruling
from deepwide.studies.study import Source, Study
from deepwide.studies.trained import finished_runs, run_table
from deepwide.studies.workplace import Workplace

# What the verdicts hang on. Written before the first run; part of the rules' hash.
SOLVED = 0.95  # of words that are right at every position
STILL = 0.05  # a network that gained more than this share of words in the last quarter of training is still learning
FEWEST_SEEDS = 3
EXTRA = 2  # depth d solves k = d + EXTRA blocks


def deep_enough_solve(measured: Measured) -> Ruling:
    cells = [row for row in measured.table("cells") if row["blocks"] <= row["depth"] + EXTRA]
    least = Interval(min(row["best"] for row in cells)) if cells else None
    if least is None or measured.number("seeds").value < FEWEST_SEEDS:
        return Ruling(NOT_DECIDABLE, least, (_few(),))
    failed = [row for row in cells if row["best"] < SOLVED]
    if not failed:
        return Ruling(REPRODUCED, least)
    # What no depth learns may be too little training; what a deeper network learns was learnable.
    learned = {row["blocks"] for row in measured.table("cells") if row["best"] >= SOLVED}
    return Ruling(NOT_REPRODUCED if {row["blocks"] for row in failed} <= learned else NOT_DECIDABLE, least)


def too_shallow_fail(measured: Measured) -> Ruling:
    cells = [row for row in measured.table("cells") if row["blocks"] > row["depth"] + EXTRA]
    most = Interval(max(row["best_longer"] for row in cells)) if cells else None
    if most is None or measured.number("seeds").value < FEWEST_SEEDS:
        return Ruling(NOT_DECIDABLE, most, (_few(),))
    if most.value >= SOLVED:
        return Ruling(NOT_REPRODUCED, most)
    learning = sum(row["still_learning"] for row in cells)
    note = Note.of("still_learning", f"in {learning} of {len(cells)} such cells a network was still learning")
    return Ruling(NOT_DECIDABLE if learning else REPRODUCED, most, (note,))


def generalise(measured: Measured) -> Ruling:
    cells = [row for row in measured.table("cells") if row["blocks"] <= row["depth"] + EXTRA and row["best"] >= SOLVED]
    if not cells or measured.number("seeds").value < FEWEST_SEEDS:
        return Ruling(NOT_DECIDABLE, None, (_few(),))
    least = min(row["best_longer"] for row in cells)
    return Ruling(REPRODUCED if least >= SOLVED else NOT_REPRODUCED, Interval(least))


def _few() -> Note:
    return Note.of("few_seeds", "too few seeds or cells for a verdict", fewest=FEWEST_SEEDS)


class BlocksSettings(Part):
    """Which networks are trained on which languages."""

    depths: Sizes = (1, 2, 3)
    blocks: Sizes = (3, 4, 5, 6)  # alternating blocks k of the languages, each trained
    seeds: Seeds = (20, 21, 22)
    width: Positive = 64
    heads: Positive = 1
    shortest: Positive = 21  # letters of the shortest words that are trained on
    length: Positive = 40  # letters of the longest words that are trained on
    longest: Positive = 60  # letters of the longest words that are tested
    steps: Positive = 1200
    batch: Positive = 32
    lr: float = 1e-3
    words: Positive = 512  # words of each test


class BlocksStudy(Study):
    """Accuracy by depth and number of blocks, at the lengths of training and beyond."""

    name = "blocks"
    question = "Does each layer of soft attention add one alternating block that a transformer can count?"
    source = Source(
        "Yang, Cadilhac, Chiang 2025, Knee-Deep in C-RASP: A Transformer Depth Hierarchy.",
        "https://arxiv.org/abs/2506.16055",
    )
    rules = (
        Rule(
            Claim("suffices", "A network of d layers learns L_k for k ≤ d + 2.", "the table of trained networks"),
            "The measure is the share of fresh words that are right at every position; of each cell (depth, k) the "
            "seed counts that is best at the lengths of the training, as the original takes the best of several "
            "settings. "
            f"Reproduced if at those lengths it is at least {SOLVED:.0%} in every cell with k ≤ d + 2; not reproduced "
            "if it is below in some cell and a network of another depth learns that k; not decidable if none does, or "
            f"with fewer than {FEWEST_SEEDS} seeds.",
            deep_enough_solve,
            "least share of right words of the cells with k ≤ d + 2",
        ),
        Rule(
            Claim(
                "necessary",
                "A network of d layers does not learn L_k for k > d + 2 so that it holds on longer words.",
                "the table of trained networks",
            ),
            "Longer words, since the theory is about all lengths. Not reproduced if in some cell with k > d + 2 that "
            f"seed has {SOLVED:.0%} of them right; reproduced if in none, and no network of these cells gained more "
            f"than {STILL} of the words in the last quarter of training; otherwise not decidable, as with fewer than "
            f"{FEWEST_SEEDS} seeds or no such cell.",
            too_shallow_fail,
            "largest share of right longer words of the cells with k > d + 2",
        ),
        Rule(
            Claim("lengths", "Networks that are deep enough answer longer words as well.", "length generalisation"),
            f"Of the cells with k ≤ d + 2 that are learned: reproduced if in each that seed has {SOLVED:.0%} of the "
            "longer words right, otherwise not reproduced; not decidable with none or with fewer than "
            f"{FEWEST_SEEDS} seeds.",
            generalise,
            "least share of right longer words of the cells that are learned",
        ),
    )
    Settings = BlocksSettings
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {
            "depths": (1, 2), "blocks": (3, 4), "seeds": (0,), "steps": 300, "shortest": 21, "length": 40,
            "longest": 60,
        },
        "cpu": {},
        "paper": {
            "depths": tuple(range(1, 11)), "blocks": tuple(range(3, 13)), "shortest": 100, "length": 150,
            "longest": 300, "width": 256, "steps": 16_000, "batch": 1, "lr": 1e-5,
        },
    }  # fmt: skip
    method = (
        "L_k are the words of k alternating blocks of a and b. A causal decoder without positions reads a word after a "
        "token that begins it and says at each position whether the prefix is in L_k. Every training word is new; its "
        "length is even over the range, and the places where the letter changes are drawn without repetition. Words "
        "have exactly k blocks, as in the original, so that the answer is whether a position is in the last. After "
        "training each network answers fresh words of the training lengths, and of lengths from there to `longest`."
    )
    differences = (
        "The original (its public code of June 2025) trains one network per cell with Adam on 1,600 words of 100 to "
        "150 letters for 10 epochs, one word at a time, searches over two widths (64, 256) and two rates (1e-5, "
        "1e-6) until one is right on all validation words, and reports that one; its networks have one head, "
        "dropout, LayerNorm after the sublayers and cross-attention to zeros. Its code of October 2025 has other "
        "widths, rates, epochs and lengths; which of the two the published table belongs to, we do not know. Here "
        "there are several seeds, one width and one rate, shorter words in preset cpu, LayerNorm before the "
        "sublayers, and no dropout. Preset paper has the lengths, the larger width and the larger rate of June 2025. "
        "Of the published shares of right words (L_3 at depth 1 100%; L_4 21.7% at depth 1, 100% at 2; L_5 11.3%, "
        "50.6%, 100% at 1, 2, 3) only the pattern is judged. An earlier run, of 1,000 steps on words of 41 to 80 "
        "letters with k up to 5, had the pattern too, but judged the second claim at the lengths of the training and "
        "without asking whether networks were still learning."
    )

    def sweeps(self, settings: BlocksSettings) -> Mapping[str, Mapping[str, Any]]:
        def run(blocks: int) -> dict[str, Any]:
            task = {"name": "blocks", "blocks": blocks, "length": settings.length, "shortest": settings.shortest}
            model = {"width": settings.width, "heads": settings.heads, "positions": "none", "tied": False}
            return {"model": model, **run_table(settings, task, examples=settings.words, evaluations=8)}

        deepest_first = sorted(settings.depths, reverse=True)
        return {
            f"L{blocks}": {"seeds": list(settings.seeds), "run": run(blocks), "grid": {"depth": deepest_first}}
            for blocks in settings.blocks
        }

    def measure(self, settings: BlocksSettings, workplace: Workplace) -> Measured:
        rows: list[dict[str, Any]] = []
        for blocks in settings.blocks:
            rows += [
                workplace.part(f"words of {blocks} blocks, run {run.id}", partial(_network_row, run, settings, blocks))
                for run in finished_runs([workplace.runs[f"L{blocks}"]])
            ]
        cells = [
            _cell([row for row in rows if row["depth"] == depth and row["blocks"] == blocks], depth, blocks)
            for blocks in settings.blocks
            for depth in settings.depths
        ]
        rows.sort(key=lambda row: (row["blocks"], row["depth"], row["seed"]))
        return Measured(
            numbers={"seeds": Interval(len(settings.seeds))}, tables={"cells": cells, "networks": rows}, notes=()
        )

    def figures(self, measured: Measured) -> Mapping[str, Any]:
        from deepwide.figures import accuracy_chart

        lengths = {"right": "lengths of the training", "longer": "longer words"}
        networks = measured.table("networks")
        cells = sorted({(row["depth"], row["blocks"]) for row in networks})
        rows = []
        for name, panel in lengths.items():
            for depth, blocks in cells:
                mean = mean_interval(
                    [row[name] for row in networks if (row["depth"], row["blocks"]) == (depth, blocks)]
                )
                rows.append({"panel": panel, "depth": depth, "blocks": blocks, **interval_row("accuracy", mean)})
        below = f"words right at every position, mean and 95% interval over seeds; dashed: {SOLVED:.0%}, learned"
        chart = accuracy_chart(
            rows, "blocks", "How many alternating blocks each depth counts", below, solved=SOLVED, panels="panel",
            x_title="blocks k",
        )  # fmt: skip
        return {"accuracy": chart}


def _network_row(run: RunRecord, settings: BlocksSettings, blocks: int) -> dict[str, Any]:
    """One network: its share of right words, as long as in training and longer, and whether it still learned."""
    return {
        "blocks": blocks,
        "depth": run.config["model"]["depth"],
        "seed": run.config["seed"],
        "right": _share_right(run.path, settings, blocks, settings.shortest, settings.length),
        "longer": _share_right(run.path, settings, blocks, settings.length + 1, settings.longest),
        "gain_in_last_quarter": late_gain(RunFolder.open(run.path).metrics(), "whole_accuracy"),
    }


def _cell(rows: list[dict[str, Any]], depth: int, blocks: int) -> dict[str, Any]:
    """One depth and number of blocks over its seeds."""
    right, best = mean_interval([row["right"] for row in rows]), max(rows, key=lambda row: row["right"])
    return {
        "blocks": blocks,
        "depth": depth,
        "best": best["right"],
        **interval_row("mean", right),
        "best_longer": best["longer"],
        "mean_longer": mean_interval([row["longer"] for row in rows]).value,
        "still_learning": any(row["gain_in_last_quarter"] > STILL for row in rows),
    }


def _share_right(path: Path, settings: BlocksSettings, blocks: int, shortest: int, longest: int) -> float:
    """The share of words of these lengths that a run's network answers right at every position."""
    import torch

    from deepwide.model import Architecture, Transformer
    from deepwide.tasks import make_task
    from deepwide.training import trained_model

    task = make_task("blocks", {"blocks": blocks, "length": longest, "shortest": max(shortest, blocks)})
    small = trained_model(path)
    fields: dict[str, Any] = dict(small.design) | {"shape": small.design.shape.but(context=task.context)}
    model = Transformer(Architecture(**fields)).eval()  # without positions, a longer context has the same weights
    model.load_state_dict(small.state_dict())
    right = total = 0.0
    with torch.no_grad():
        for batch in task.evaluation(settings.words, 32):
            logits_BTV = model(batch.tokens_BT, padding_BT=batch.padding_BT)
            sums = task.measure(batch, 0.0, partial(torch.Tensor.clone, logits_BTV))
            right, total = right + sums["whole"], total + sums["examples"]
    return right / total
