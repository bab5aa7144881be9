"""The task and the training step of hops beside the authors' own (github.com/chsanford/hop-induction-heads).

    python -m benchmarks.studies.hops --authors CHECKOUT --peers FOLDER --out results/studies/hops-authors.json

CHECKOUT is a clone of their repository; FOLDER has bidict, munch and pyyaml by pip install --target (transformers must
be importable). Their task and model are imported and run as they are, on a CPU; their training script asks for Apple's
GPU and an account, so its step is written out here: forward, cross-entropy, backward, AdamW, schedule. Everything is
processor time on one thread, in turns.

1. Same sequences, same answers: find^j of their generator and of ours, every position, every j.
2. Generating a batch of 32, theirs over ours, at the original size (100 letters, 16 hops) and at 40 letters, 8 hops.
3. A training step with its batch: theirs as it is (dropout 0.1), ours at the same shape (learned positions, a
   feed-forward of 4 widths, no dropout), and which share of each is generating data.
4. Processor time until 90% of the answers at one hop are right, evaluated without dropout on fresh sequences: two
   layers, 24 letters, at most one hop, batch 32; theirs at its own rate and at ours, ours as the study trains.
"""

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from deepwide.model import Transformer
from deepwide.tasks import Hops, hop_positions
from deepwide.training import Optimiser, keep_memory, resolve

BATCH, HEADS = 32, 4
SIZES = {"original": {"length": 100, "most": 16, "width": 128}, "40 letters": {"length": 40, "most": 8, "width": 64}}
ENOUGH, LONGEST = 0.9, 30.0  # right answers at one hop, and seconds after which nobody waits for them


def their_task(length: int, most: int, seed: int = 4444) -> Any:
    """Their generator; it drops the last two of its letters."""
    rng = np.random.RandomState(seed)
    return import_module("tasks").InductionHopsFullSequenceTask(
        seq_len=length + 2, char_tokens=4, max_hops=most, rng=rng
    )


def same_answers(length: int, most: int, sequences: int = 50) -> int:
    """How many positions of their sequences were compared; every find^j must agree."""
    task, compared = their_task(length, most), 0
    for _ in range(sequences):
        _, _, strings, places = task.get_strings(metadata=True)
        letters = np.array([[ord(letter) - ord("a") for letter in strings[0]]])
        for j in range(most + 1):
            ours = hop_positions(letters, np.array([j]))[0]
            assert ours.tolist() == list(places[j]), f"find^{j} of {strings[0]} differs"
            compared += len(ours)
    return compared


def in_turns(ways: dict[str, Callable[[int], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of processor time of every way, round by round, in an order that rotates; two rounds to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    names = list(ways)
    for number in range(rounds + 2):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            begun = time.process_time()
            ways[name](number)
            if number >= 2:
                seconds[name].append(time.process_time() - begun)
    return seconds


def ratio(over: list[float], under: list[float]) -> float:
    return median(a / b for a, b in zip(over, under, strict=True))


def generators(length: int, most: int, rounds: int) -> dict[str, float]:
    theirs, ours = their_task(length, most), Hops(length=length, most=most)
    seconds = in_turns(
        {"theirs": lambda _: theirs.get_batch(BATCH), "ours": lambda n: ours.batch(n * BATCH, BATCH, 0)}, rounds
    )
    return {
        "theirs_milliseconds": 1000 * median(seconds["theirs"]),
        "ours_milliseconds": 1000 * median(seconds["ours"]),
        "theirs_over_ours": ratio(seconds["theirs"], seconds["ours"]),
    }


class Theirs:
    """Their model and their step."""

    def __init__(self, depth: int, width: int, length: int, most: int, rate: float) -> None:
        torch.manual_seed(0)
        self.task = their_task(length, most)
        theirs = import_module("models").GPT2Encoder
        self.model = theirs(vocab_size=30, seq_length=length + 2, dim_embedding=width, depth=depth, headcount=HEADS)
        self.model.train()
        self.adam = torch.optim.AdamW(self.model.parameters(), lr=rate)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.adam, lambda step: min(1.0, (step + 1) / 50))

    def batch(self) -> Any:
        return self.task.get_batch(BATCH)

    def step(self, batch: Any) -> None:
        inputs, targets = batch
        predictions = self.model(inputs)
        loss = functional.cross_entropy(predictions.reshape(-1, predictions.shape[-1]), targets.reshape(-1))
        self.model.zero_grad()
        loss.backward()
        self.adam.step()
        self.schedule.step()

    def accuracy(self, hops: int) -> float:
        """Right among defined answers, dropout off."""
        inputs, targets = self.task.get_batch(64, hops=hops)
        self.model.eval()
        with torch.no_grad():
            right = self.model(inputs).argmax(-1) == targets
        self.model.train()
        defined = targets < self.task.num_tokens - 2
        return float(right[defined].float().mean())


class Ours:
    """deepwide's model and step."""

    def __init__(self, depth: int, length: int, most: int, rate: float, **model: Any) -> None:
        self.task = Hops(length=length, most=most)
        config = {
            "model": {"depth": depth, "heads": HEADS, "tied": False, **model},
            "task": {"name": "hops", "length": length, "most": most},
            "steps": 10_000, "batch": BATCH, "optimiser": {"lr": rate, "weight_decay": 0.01},
        }  # fmt: skip
        run = resolve(config)
        self.model, self.taken = Transformer(run.architecture, 0), 0
        self.optimiser = Optimiser(self.model, run.architecture, run.optimiser)

    def batch(self) -> Any:
        self.taken += 1
        return self.task.batch(self.taken * BATCH, BATCH, 0)

    def step(self, batch: Any) -> None:
        self.model(batch.tokens_BT, batch.targets, **batch.inputs).backward()
        self.optimiser.step(min(1.0, self.taken / 50), self.optimiser.gradient_norm())

    def accuracy(self, hops: int) -> float:
        [batch] = self.task.evaluation(64 * (self.task.most + 1), 10_000)
        asked = self.task.hops_asked(batch.tokens_BT) == hops
        with torch.no_grad():
            right = self.model(batch.tokens_BT[asked]).argmax(-1) == batch.targets[asked]
        assert batch.mask_BT is not None
        return float(right[batch.mask_BT[asked]].float().mean())


def steps(length: int, most: int, width: int, rounds: int) -> dict[str, Any]:
    learners: dict[str, Theirs | Ours] = {
        "theirs": Theirs(3, width, length, most, 1e-4),
        "ours": Ours(3, length, most, 1e-4, width=width, positions="learned"),
    }
    batches: dict[str, Any] = {}

    def draw(name: str) -> Callable[[int], object]:
        return lambda _: batches.update({name: learners[name].batch()})

    def learn(name: str) -> Callable[[int], object]:
        return lambda _: learners[name].step(batches[name])

    ways = {f"{name}, {part}": make(name) for name in learners for part, make in (("data", draw), ("step", learn))}
    seconds = {name: np.array(times) for name, times in in_turns_of_pairs(ways, rounds).items()}
    whole = {name: seconds[f"{name}, data"] + seconds[f"{name}, step"] for name in learners}
    return {
        "milliseconds": {name: 1000 * float(np.median(times)) for name, times in seconds.items()},
        "share_of_data": {name: float(np.median(seconds[f"{name}, data"] / whole[name])) for name in learners},
        "theirs_over_ours": float(np.median(whole["theirs"] / whole["ours"])),
        "theirs_over_ours_without_data": float(np.median(seconds["theirs, step"] / seconds["ours, step"])),
    }


def in_turns_of_pairs(ways: dict[str, Callable[[int], object]], rounds: int) -> dict[str, list[float]]:
    """As `in_turns`, but a learner's batch is always drawn just before its step."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    names = list(ways)
    pairs = [names[:2], names[2:]]
    for number in range(rounds + 2):
        for name in [name for pair in (pairs if number % 2 else pairs[::-1]) for name in pair]:
            begun = time.process_time()
            ways[name](number)
            if number >= 2:
                seconds[name].append(time.process_time() - begun)
    return seconds


def until_solved(learner: Theirs | Ours) -> dict[str, float | None]:
    """Steps and seconds of processor time (data and steps) until one hop is solved; evaluations are not counted."""
    spent, taken, accuracy = 0.0, 0, 0.0
    while spent < LONGEST:
        begun = time.process_time()
        for _ in range(50):
            learner.step(learner.batch())
        spent += time.process_time() - begun
        taken += 50
        accuracy = learner.accuracy(1)
        if accuracy >= ENOUGH:
            return {"seconds": spent, "steps": taken, "accuracy": accuracy}
    return {"seconds": None, "steps": taken, "accuracy": accuracy, "stopped_after_seconds": spent}


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--authors", type=Path, required=True, help="a clone of their repository")
    parser.add_argument("--peers", type=Path, help="a folder with bidict, munch and pyyaml")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(words)
    sys.path[:0] = [str(given.authors / "src"), *([str(given.peers)] if given.peers else [])]
    torch.set_num_threads(1)
    keep_memory()
    report: dict[str, Any] = {"positions_compared": same_answers(98, 16)}
    report["generator"] = {name: generators(s["length"], s["most"], given.rounds) for name, s in SIZES.items()}
    report["step"] = {name: steps(**size, rounds=given.rounds) for name, size in SIZES.items()}
    small = {"length": 24, "most": 1}
    report["until_one_hop_is_solved"] = {
        "theirs, its rate 1e-4": until_solved(Theirs(2, 64, rate=1e-4, **small)),
        "theirs, our rate 3e-3": until_solved(Theirs(2, 64, rate=3e-3, **small)),
        "ours, their shape and rate 1e-4": until_solved(Ours(2, rate=1e-4, width=64, positions="learned", **small)),
        "ours, as the study trains": until_solved(
            Ours(2, rate=3e-3, width=64, positions="rotary", initialisation="xavier", ff_width=128, **small)
        ),
    }
    print(json.dumps(report, indent=1))
    if given.out:
        about = {"machine": platform.processor() or platform.machine(), "torch": torch.__version__, "threads": 1}
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps({"about": about, **report}, indent=1) + "\n")


if __name__ == "__main__":
    main()
