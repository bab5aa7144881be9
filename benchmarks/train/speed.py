"""Tokens per second against Hugging Face transformers' GPT-2 and litgpt, and the share of this machine's sgemm peak.

    python -m benchmarks.train.speed --out results/train/speed.json

Same shape, batch, data, optimiser (torch's fused AdamW) and clipping for all, dropout off, float32, one thread. Every
contestant has a process of its own, set up as it sets itself up, and only one works at a time: each round lets every
one make a step, in an order that rotates, so that whatever else the machine does hits all alike; the clock is the
processor time of the step, which waiting for a busy core does not move. Speed is from each contestant's fastest steps
(the 25% quantile); the ratio is the median over rounds of the ratio within a round. "transformers" is as shipped but
for dropout; its tanh GELU, which is slow on a CPU, is also replaced by the exact one that deepwide uses, so that both
reasons for a difference are seen. litgpt, which has no learned positions, is measured if it can be imported (--peers
names a folder to import it from). --compiled adds deepwide and transformers under torch.compile.
"""

import argparse
import json
import multiprocessing
import platform
import sys
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np
import torch

from deepwide.data import DataConfig, prepare
from deepwide.model import Architecture, Transformer
from deepwide.shape import Shape, flops
from deepwide.tasks import Language
from deepwide.training import Optimiser, OptimiserConfig, keep_memory

SHAPES = ((2, 64), (4, 128), (6, 256), (8, 512))
Step = Callable[[torch.Tensor], float]


def ours(shape: Shape, activation: str = "gelu", compiled: bool = False, keep: bool = True) -> Step:
    """A step of deepwide's loop."""
    if keep:
        keep_memory()
    design = Architecture(shape=shape, activation=activation)  # type: ignore[arg-type]
    model = Transformer(design)
    optimiser = Optimiser(model, design, OptimiserConfig())
    run = torch.compile(model) if compiled else model

    def step(batch_BT: torch.Tensor) -> float:
        loss = run(batch_BT[:, :-1].contiguous(), batch_BT[:, 1:].contiguous())
        loss.backward()
        norm = optimiser.gradient_norm()
        float(norm)
        optimiser.step(1.0, norm)
        return loss.item()

    return step


def _common(model: torch.nn.Module, loss_of: Callable[[torch.Tensor], torch.Tensor]) -> Step:
    adam = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)

    def step(batch_BT: torch.Tensor) -> float:
        loss = loss_of(batch_BT)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        adam.zero_grad(set_to_none=True)
        return loss.item()

    return step


def hugging_face(shape: Shape, activation: str, compiled: bool = False) -> Step:
    """transformers' GPT-2, its attention by torch's fused kernel."""
    import transformers

    config = transformers.GPT2Config(  # type: ignore[call-arg]
        vocab_size=shape.vocab, n_positions=shape.context, n_embd=shape.width, n_layer=shape.depth, n_head=shape.heads,
        activation_function=activation, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, attn_implementation="sdpa",
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model = transformers.GPT2LMHeadModel(config).train()
    assert model.num_parameters() == shape.total_params
    run = torch.compile(model) if compiled else model
    return _common(
        model, lambda batch_BT: run(input_ids=batch_BT[:, :-1], labels=batch_BT[:, :-1], use_cache=False).loss
    )


def litgpt(shape: Shape) -> Step:
    """litgpt's GPT with GPT-NeoX's parts nearest to this shape; it has no learned positions."""
    from litgpt.config import Config
    from litgpt.model import GPT

    config = Config(
        block_size=shape.context, vocab_size=shape.vocab, padded_vocab_size=shape.vocab, n_layer=shape.depth,
        n_head=shape.heads, n_embd=shape.width, rotary_percentage=0.0, parallel_residual=False, bias=True,
        norm_class_name="LayerNorm", mlp_class_name="GptNeoxMLP", intermediate_size=shape.ff_width,
    )  # fmt: skip
    model = GPT(config)

    def loss(batch_BT: torch.Tensor) -> torch.Tensor:
        logits = model(batch_BT[:, :-1])
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch_BT[:, 1:].flatten())

    return _common(model, loss)


def sgemm(size: int = 1024) -> float:
    """FLOPs a second of one product."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    out = torch.empty_like(a)
    begun = time.process_time()
    torch.mm(a, b, out=out)
    return 2 * size**3 / (time.process_time() - begun)


CONTESTANTS: dict[str, Callable[[Shape], Step]] = {
    "deepwide": ours,
    "transformers (gelu)": partial(hugging_face, activation="gelu"),
    "transformers (as shipped: gelu_new)": partial(hugging_face, activation="gelu_new"),
    "deepwide (memory given back)": partial(ours, keep=False),
    "deepwide (gelu_tanh)": partial(ours, activation="gelu_tanh"),
    "litgpt": litgpt,
    "deepwide (compiled)": partial(ours, compiled=True),
    "transformers (gelu, compiled)": partial(hugging_face, activation="gelu", compiled=True),
}


def work(line: Connection, name: str, shape: Shape, data: DataConfig, batch: int, peers: Path | None) -> None:
    """A contestant's process: asked for a step by its number, it answers with the seconds that the step took."""
    if peers:
        sys.path.append(str(peers))
    torch.set_num_threads(1)
    try:
        step = CONTESTANTS[name](shape)
    except ImportError as error:
        line.send(str(error))
        return
    line.send(None)
    language = Language(data, shape.context)
    while (number := line.recv()) is not None:
        examples = language.batch(batch * number, batch, seed=0)
        windows_BT = torch.cat((examples.tokens_BT, examples.targets[:, -1:]), dim=1)
        begun = time.process_time()
        step(windows_BT)
        line.send(time.process_time() - begun)


def enter(name: str, shape: Shape, data: DataConfig, batch: int, peers: Path | None) -> Connection | None:
    """The line to a contestant that is ready; None for a peer that is not installed."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    spawn.Process(target=work, args=(there, name, shape, data, batch, peers), daemon=True).start()
    why = here.recv()
    if why is not None:
        print(f"{name} is not measured: {why}", file=sys.stderr)
        return None
    return here


def contest(shape: Shape, batch: int, rounds: int, peers: Path | None = None, compiled: bool = False) -> dict[str, Any]:
    """One shape: seconds per step of everybody, round by round."""
    depth, width, vocab, context = shape.depth, shape.width, shape.vocab, shape.context
    data = DataConfig() if vocab == 256 else DataConfig(tokeniser="bpe", vocab=vocab)
    prepare(data)
    wanted = [name for name in CONTESTANTS if compiled or "compiled" not in name]
    entered = {name: enter(name, shape, data, batch, peers) for name in wanted}
    lines = {name: line for name, line in entered.items() if line is not None}
    seconds: dict[str, list[float]] = {name: [] for name in lines}
    peaks: list[float] = []
    names = list(lines)
    for number in range(rounds + 2):
        peaks += [sgemm() for _ in range(3)]
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            lines[name].send(number)
            took = lines[name].recv()
            if number >= 2:
                seconds[name].append(took)
    for line in lines.values():
        line.send(None)
    tokens = batch * context
    peak = float(np.quantile(peaks, 0.75))
    cost = flops(shape, context).training
    fast = {name: quantiles(times, n=4)[0] for name, times in seconds.items()}
    return {
        "depth": depth, "width": width, "vocab": vocab, "batch": batch, "context": context, "rounds": rounds,
        "tokens_per_second": {name: tokens / fast[name] for name in names},
        "ratio_of_deepwide": {
            name: median(b / a for a, b in zip(seconds["deepwide"], seconds[name], strict=True)) for name in names
        },
        "sgemm_peak_flops": peak,
        "share_of_peak": {name: cost * batch / fast[name] / peak for name in names},
    }  # fmt: skip


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--context", type=int, default=128)
    parser.add_argument("--vocab", type=int, default=256)
    parser.add_argument("--shapes", default=",".join(f"{L}x{d}" for L, d in SHAPES))
    parser.add_argument("--peers", type=Path, help="a folder with litgpt installed by pip install --target")
    parser.add_argument("--compiled", action="store_true", help="torch.compile too: a minute or two more a shape")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(words)
    torch.set_num_threads(1)
    rows = []
    for text in given.shapes.split(","):
        depth, width = map(int, text.split("x"))
        shape = Architecture.of("levine", depth=depth, width=width, vocab=given.vocab, context=given.context).shape
        row = contest(shape, given.batch, given.rounds, given.peers, given.compiled)
        rows.append(row)
        print(f"({depth}, {width}), vocabulary {given.vocab}: sgemm {row['sgemm_peak_flops'] / 1e9:.0f} GFLOP/s")
        for name, speed in row["tokens_per_second"].items():
            ratio, share = row["ratio_of_deepwide"][name], row["share_of_peak"][name]
            print(f"  {name:36} {speed:9.0f} tokens/s  {share:4.0%} of peak  deepwide is {ratio:.2f} times as fast")
    if given.out:
        about = {"machine": platform.processor() or platform.machine(), "torch": torch.__version__, "threads": 1}
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
