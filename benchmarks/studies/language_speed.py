"""Tokens per second of a training step beside JoeyNMT (translation) and transformers' BERT (classification).

    python -m benchmarks.studies.language_speed --joeynmt FOLDER --out results/studies/peers/language-speed.json

JoeyNMT asks for an old protobuf, so it goes into a folder of its own, without what it depends on:

    pip install --target FOLDER --no-deps joeynmt importlib_metadata zipp absl-py tensorboard matplotlib pillow \
        kiwisolver cycler pyparsing python-dateutil six fonttools contourpy sentencepiece subword-nmt sacremoses

Same depth, width, heads, feed-forward, vocabulary and sentences for both; dropout off, label smoothing 0.1 for
translation, torch's fused AdamW and clipping, float32, one thread. JoeyNMT's positions are sinusoids, so deepwide has
none here: then both have equally many parameters. BERT has a pooler and segment embeddings that deepwide's classifier
lacks; both counts are stated. Translation is also timed in decoding, by beam search of 5 with random weights, so that
every answer is as long as it may be. Every contestant has a process of its own and takes turns round by round; the
clock is processor time. Speed is from each one's fastest quarter, the ratio the median over rounds. Tokens are real
ones, padding is not counted.
"""

import argparse
import json
import multiprocessing
import platform
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median, quantiles
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deepwide.model import Architecture, Transformer, beam_search
from deepwide.training import Optimiser, OptimiserConfig, keep_memory

SHAPES = ((2, 64), (3, 128), (3, 256))
VOCAB, HEADS, BATCH, LONGEST, BEAM, CLASSES = 4000, 4, 32, 32, 5, 2
PAD, BEGIN, END = 1, 2, 3  # JoeyNMT's; 0 is its unknown word
Work = Callable[[int], float]  # by number of a batch: tokens that were worked on


def sentences(number: int) -> tuple[Tensor, Tensor]:
    """Tokens of a batch, each sentence of a length of its own, and where they are real."""
    draw = np.random.default_rng(number)
    lengths = draw.integers(8, LONGEST, BATCH)
    real = np.arange(lengths.max())[None, :] < lengths[:, None]
    tokens = np.where(real, draw.integers(4, VOCAB, real.shape), PAD)
    return torch.from_numpy(tokens), torch.from_numpy(real)


def _adam(model: torch.nn.Module) -> Callable[[Tensor], None]:
    adam = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)

    def update(loss: Tensor) -> None:
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        adam.zero_grad(set_to_none=True)

    return update


def _ours(**choices: Any) -> tuple[Transformer, Callable[[Tensor], None]]:
    keep_memory()
    design = Architecture.of("levine", vocab=VOCAB, heads=HEADS, context=LONGEST + 1, **choices)
    model = Transformer(design)
    optimiser = Optimiser(model, design, OptimiserConfig())

    def update(loss: Tensor) -> None:
        loss.backward()
        norm = optimiser.gradient_norm()
        float(norm)
        optimiser.step(1.0, norm)

    return model, update


def translator(depth: int, width: int) -> tuple[int, Work, Work]:
    """deepwide: its parameters, a training step, a search."""
    model, update = _ours(
        depth=depth, width=width, kind="encoder-decoder", encoder_depth=depth, positions="none", activation="relu"
    )

    def train(number: int) -> float:
        source_BS, real_BS = sentences(2 * number)
        target_BT, real_BT = sentences(2 * number + 1)
        begun_BT = torch.cat([torch.full((BATCH, 1), BEGIN), target_BT[:, :-1]], dim=1)
        update(
            model.train()(
                begun_BT, target_BT, mask_BT=real_BT, source_BS=source_BS, padding_BT=real_BT,
                source_padding_BS=real_BS, smoothing=0.1,
            )
        )  # fmt: skip
        return float(real_BS.sum() + real_BT.sum())

    def decode(number: int) -> float:
        source_BS, real_BS = sentences(2 * number)
        answers = beam_search(
            model.eval(), source_BS, real_BS, begin=BEGIN, end=END, beam=BEAM, longest=LONGEST, alpha=1
        )
        return float(sum(len(answer.tokens) for answer in answers))

    return sum(p.numel() for p in model.parameters()), train, decode


def joeynmt(depth: int, width: int) -> tuple[int, Work, Work]:
    """JoeyNMT's transformer with norms before sublayers and one embedding for everything."""
    from joeynmt.model import build_model
    from joeynmt.search import beam_search as search
    from joeynmt.vocabulary import Vocabulary

    names = {"unk": 0, "pad": PAD, "bos": BEGIN, "eos": END}
    special: dict[str, Any] = {"sep_token": None, "sep_id": None, "lang_tags": []}
    for name, number in names.items():
        special |= {f"{name}_token": f"<{name}>", f"{name}_id": number}
    vocabulary = Vocabulary([f"w{i}" for i in range(4, VOCAB)], SimpleNamespace(**special))
    side = {
        "type": "transformer", "num_layers": depth, "num_heads": HEADS, "hidden_size": width, "ff_size": 4 * width,
        "embeddings": {"embedding_dim": width, "scale": True, "dropout": 0.0}, "dropout": 0.0, "layer_norm": "pre",
    }  # fmt: skip
    config = {"encoder": side, "decoder": dict(side), "tied_embeddings": True, "tied_softmax": True}
    model = build_model(config, vocabulary, vocabulary)
    model.loss_function = ("crossentropy", 0.1)
    update = _adam(model)

    def train(number: int) -> float:
        source_BS, real_BS = sentences(2 * number)
        target_BT, real_BT = sentences(2 * number + 1)
        begun_BT = torch.cat([torch.full((BATCH, 1), BEGIN), target_BT[:, :-1]], dim=1)
        model.train()
        loss, *_ = model(
            return_type="loss", src=source_BS, trg=target_BT, trg_input=begun_BT, src_mask=real_BS[:, None],
            trg_mask=real_BT[:, None], src_length=real_BS.sum(1),
        )  # fmt: skip
        update(loss / real_BT.sum())
        return float(real_BS.sum() + real_BT.sum())

    @torch.no_grad()
    def decode(number: int) -> float:
        source_BS, real_BS = sentences(2 * number)
        model.eval()
        memory, hidden, *_ = model(
            return_type="encode", src=source_BS, src_length=real_BS.sum(1), src_mask=real_BS[:, None]
        )  # fmt: skip
        answers, *_ = search(
            model=model, beam_size=BEAM, encoder_output=memory, encoder_hidden=hidden, src_mask=real_BS[:, None],
            max_output_length=LONGEST, alpha=1.0,
        )  # fmt: skip
        return float(((answers != PAD) & (answers != END)).sum())

    return sum(p.numel() for p in model.parameters()), train, decode


def classifier(depth: int, width: int) -> tuple[int, Work, None]:
    """deepwide's encoder with BERT's order of norms."""
    model, update = _ours(
        depth=depth, width=width, kind="encoder", head="class", classes=CLASSES, norm_place="post", embedding_norm=True,
        final_norm=False, initialisation="xavier",
    )  # fmt: skip

    def train(number: int) -> float:
        tokens_BT, real_BT = sentences(number)
        update(model(tokens_BT, tokens_BT[:, 0] % CLASSES, padding_BT=real_BT))
        return float(real_BT.sum())

    return sum(p.numel() for p in model.parameters()), train, None


def bert(depth: int, width: int) -> tuple[int, Work, None]:
    """transformers' BERT for classification, attention by torch's fused kernel."""
    import transformers

    config = transformers.BertConfig(  # type: ignore[call-arg]
        vocab_size=VOCAB, hidden_size=width, num_hidden_layers=depth, num_attention_heads=HEADS,
        intermediate_size=4 * width, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        max_position_embeddings=LONGEST + 1, num_labels=CLASSES, pad_token_id=PAD, attn_implementation="sdpa",
    )  # fmt: skip
    model = transformers.BertForSequenceClassification(config).train()
    update = _adam(model)

    def train(number: int) -> float:
        tokens_BT, real_BT = sentences(number)
        update(model(input_ids=tokens_BT, attention_mask=real_BT.long(), labels=tokens_BT[:, 0] % CLASSES).loss)
        return float(real_BT.sum())

    return model.num_parameters(), train, None


CONTESTANTS: dict[str, dict[str, Callable[[int, int], tuple[int, Work, Work | None]]]] = {
    "translation": {"deepwide": translator, "joeynmt": joeynmt},
    "classification": {"deepwide": classifier, "transformers": bert},
}


def compete(line: Connection, contest: str, name: str, depth: int, width: int, peers: Path | None) -> None:
    """A contestant's process: asked for a round, it answers with tokens and seconds of training and of decoding."""
    if peers and name == "joeynmt":
        sys.path.append(str(peers))
    torch.set_num_threads(1)
    torch.manual_seed(0)
    try:
        params, train, decode = CONTESTANTS[contest][name](depth, width)
    except ImportError as error:
        line.send(str(error))
        return
    line.send(params)
    while (number := line.recv()) is not None:
        answer = []
        for work in filter(None, (train, decode)):
            begun = time.process_time()
            tokens = work(number)
            answer.append((tokens, time.process_time() - begun))
        line.send(answer)


def contest_row(contest: str, depth: int, width: int, rounds: int, peers: Path | None) -> dict[str, Any]:
    """One shape: speeds of everybody, and how many times as fast deepwide is."""
    spawn = multiprocessing.get_context("spawn")
    lines: dict[str, Connection] = {}
    params: dict[str, int] = {}
    for name in CONTESTANTS[contest]:
        here, there = spawn.Pipe()
        spawn.Process(target=compete, args=(there, contest, name, depth, width, peers), daemon=True).start()
        answer = here.recv()
        if isinstance(answer, str):
            print(f"{name} is not measured: {answer}", file=sys.stderr)
            continue
        lines[name], params[name] = here, answer
    speeds: dict[str, list[list[float]]] = {name: [] for name in lines}
    names = list(lines)
    for number in range(rounds + 2):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            lines[name].send(number)
            took = lines[name].recv()
            if number >= 2:
                speeds[name].append([tokens / seconds for tokens, seconds in took])
    for line in lines.values():
        line.send(None)
    row: dict[str, Any] = {"contest": contest, "depth": depth, "width": width, "rounds": rounds, "parameters": params}
    for place, what in enumerate(("training", "decoding")[: len(speeds[names[0]][0])]):
        each = {name: [speed[place] for speed in mine] for name, mine in speeds.items()}
        row[f"{what}_tokens_per_second"] = {name: round(quantiles(mine, n=4)[2], 1) for name, mine in each.items()}
        row[f"{what}_times_as_fast"] = {
            name: round(median(ours / theirs for ours, theirs in zip(each["deepwide"], mine, strict=True)), 3)
            for name, mine in each.items()
            if name != "deepwide"
        }
    return row


def main(arguments: list[str] | None = None) -> None:
    """Measure every shape and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--shapes", default=",".join(f"{depth}x{width}" for depth, width in SHAPES))
    parser.add_argument("--joeynmt", type=Path, help="the folder that pip install --target put it into")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(arguments)
    shapes = [tuple(map(int, text.split("x"))) for text in given.shapes.split(",")]
    rows = []
    for contest in CONTESTANTS:
        for depth, width in shapes:
            row = contest_row(contest, depth, width, given.rounds, given.joeynmt)
            rows.append(row)
            print(json.dumps(row), flush=True)
    if given.out:
        about = {"machine": platform.processor() or platform.machine(), "torch": torch.__version__, "threads": 1}
        about |= {"batch": BATCH, "vocab": VOCAB, "longest": LONGEST, "beam": BEAM, "heads": HEADS}
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
