"""The sorting networks of Dong et al. 2021 beside the authors' code (github.com/twistedcubic/attention-rank-collapse).

    python -m benchmarks.studies.rank_collapse --peer CHECKOUT --out results/studies/peers/rank-collapse.json

Same task, width, depth, heads, batch, Adam and learning rate (of their command in README.md); each draws its own
initial weights as it does, theirs has a linear layer after the embeddings and dropout 0.1. Both train in turn, a step
of each, so that whatever else the machine does hits both alike, and the clock is processor time. Their code needs a
transformers of 2020 that does not install on this Python: the few names that it imports from there are stood in for by
`_stand_in`.

On the same weights (their linear layer the identity, dropout off), the logits of the whole network and of sampled paths
must agree.
"""

import argparse
import json
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import nn

from deepwide.model import Architecture, Transformer
from deepwide.probes import SKIP, path_accuracies, path_logits, sample_paths
from deepwide.tasks import Batch, make_task
from deepwide.training import Optimiser, OptimiserConfig

DEPTH, WIDTH, HEADS, LABELS, LENGTH = 6, 48, 2, 10, 8
EXAMPLES, BATCH, EPOCHS, RATE = 1000, 30, 65, 1e-5
EVERY = 68  # steps between evaluations: two epochs
GOALS = (0.3, 0.4, 0.45, 0.5)
Step = Callable[[torch.Tensor, torch.Tensor], None]


def _stand_in() -> None:
    """The names that the authors' modules import from transformers, as far as sorting uses them."""

    class Config(types.SimpleNamespace):
        def __init__(self, **given: Any) -> None:
            usual = {
                "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "layer_norm_eps": 1e-12,
                "max_position_embeddings": 512, "pad_token_id": 0, "initializer_range": 0.02, "is_decoder": False,
                "add_cross_attention": False, "chunk_size_feed_forward": 0, "output_attentions": False,
                "output_hidden_states": False, "use_return_dict": False, "type_vocab_size": 2, "cur_step": 0,
            }  # fmt: skip
            super().__init__(**(usual | given))

    class PreTrained(nn.Module):
        def __init__(self, config: Any) -> None:
            super().__init__()
            self.config = config

        def init_weights(self) -> None:
            self.apply(self._init_weights)  # type: ignore[arg-type]

        def get_extended_attention_mask(self, mask: torch.Tensor, *_: Any) -> torch.Tensor:
            return (1.0 - mask[:, None, None, :]) * -10000.0

        def get_head_mask(self, _: Any, layers: int) -> list[None]:
            return [None] * layers

    def decorate(*_: Any, **__: Any) -> Callable[[Any], Any]:
        return lambda decorated: decorated

    outputs = (
        "BaseModelOutput", "BaseModelOutputWithPooling", "CausalLMOutput", "MaskedLMOutput",
        "MultipleChoiceModelOutput", "NextSentencePredictorOutput", "QuestionAnsweringModelOutput",
        "SequenceClassifierOutput", "TokenClassifierOutput",
    )  # fmt: skip
    docs = ("add_code_sample_docstrings", "add_start_docstrings", "add_start_docstrings_to_callable",
            "replace_return_docstrings")  # fmt: skip
    content: dict[str, dict[str, Any]] = {
        "activations": dict.fromkeys(("gelu", "gelu_new", "swish"), nn.functional.gelu),
        "configuration_bert": {"BertConfig": Config},
        "file_utils": dict.fromkeys(docs, decorate) | {"ModelOutput": dict},
        "modeling_outputs": dict.fromkeys(outputs, dict),
        "modeling_utils": dict.fromkeys(
            ("apply_chunking_to_forward", "find_pruneable_heads_and_indices", "prune_linear_layer")
        )
        | {"PreTrainedModel": PreTrained},
    }
    for name, names in content.items():
        module = types.ModuleType(f"transformers.{name}")
        vars(module).update(names)
        sys.modules[module.__name__] = module


def theirs(peer: Path, **choices: Any) -> Any:
    """A sorting network of the authors."""
    sys.modules["transformers"] = types.ModuleType("transformers")
    _stand_in()
    sys.path.insert(0, str(peer))
    from configuration_san import SANConfig  # type: ignore[import-not-found]
    from modeling_san import SANForSequenceClassification  # type: ignore[import-not-found]

    torch.manual_seed(2)
    return SANForSequenceClassification(
        config=SANConfig(
            vocab_size=LABELS, hidden_size=WIDTH, num_hidden_layers=DEPTH, num_attention_heads=HEADS, hidden_act="gelu",
            intermediate_size=WIDTH, do_mlp=False, num_labels=LABELS, **choices,
        )
    )  # fmt: skip


def ours() -> Transformer:
    """The same network of deepwide, as the study trains it."""
    design = Architecture.of(
        depth=DEPTH, width=WIDTH, heads=HEADS, vocab=LABELS, context=LENGTH, kind="encoder", ff_width=0,
        norm_place="post", embedding_norm=True, tied=False, head_bias=True,
    )  # fmt: skip
    return Transformer(design, seed=2)


def their_step(model: Any) -> Step:
    """A step of their loop."""
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE)
    loss_of = nn.CrossEntropyLoss()

    def step(tokens: torch.Tensor, targets: torch.Tensor) -> None:
        model.train()
        loss = loss_of(model(tokens)[0].view(-1, LABELS), targets.view(-1))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    return step


def our_step(model: Transformer) -> Step:
    """A step of ours."""
    settings = OptimiserConfig(lr=RATE, beta2=0.999, weight_decay=0.0, clip=0.0)
    optimiser = Optimiser(model, model.design, settings)

    def step(tokens: torch.Tensor, targets: torch.Tensor) -> None:
        model(tokens, targets).backward()
        optimiser.step(1.0, optimiser.gradient_norm())

    return step


def accuracy(logits: torch.Tensor, targets: torch.Tensor) -> float:
    """The share of right answers."""
    return float((logits.argmax(-1) == targets).double().mean())


def same_weights(peer: Path) -> dict[str, float]:
    """How far logits differ on the same weights: of the whole network, and of sums of paths by length."""
    model = ours().double().eval()
    with torch.no_grad():
        for parameter in model.parameters():  # far from the start, where everything is nearly linear
            noise = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
            parameter.add_(0.2 * noise)
    other = theirs(peer, layer_norm_eps=1e-5).double().eval()
    other.config.no_sub_path = True
    weights = dict(model.named_parameters())
    embeddings = other.bert.embeddings
    pairs = [
        (embeddings.word_embeddings.weight, weights["embedding.weight"]),
        (embeddings.lin.weight, torch.eye(WIDTH)),
        (embeddings.lin.bias, torch.zeros(WIDTH)),
        (embeddings.LayerNorm.weight, weights["embedding_norm.weight"]),
        (embeddings.LayerNorm.bias, weights["embedding_norm.bias"]),
        (other.classifier.weight, weights["head.weight"]),
        (other.classifier.bias, weights["head_bias"]),
    ]
    for layer, block in enumerate(other.bert.encoder.layer):
        at, read = f"blocks.{layer}.", block.attention.self
        query, key, value = weights[f"{at}attention.qkv.weight"].chunk(3)
        biases = weights[f"{at}attention.qkv.bias"].chunk(3)
        pairs += [(read.query.weight, query), (read.key.weight, key), (read.value, value)]
        pairs += [(read.query.bias, biases[0]), (read.key.bias, biases[1]), (read.value_bias, biases[2])]
        out = block.attention.output
        pairs += [
            (out.dense, weights[f"{at}attention.out.weight"]),
            (out.dense_bias, weights[f"{at}attention.out.bias"]),
        ]
        pairs += [(getattr(out.LayerNorm, name), weights[f"{at}attention_norm.{name}"]) for name in ("weight", "bias")]
    with torch.no_grad():
        for target, source in pairs:
            target.copy_(source)
        embeddings.position_embeddings.weight[:LENGTH].copy_(weights["positions"])
        [batch] = list(make_task("sorting", {}).evaluation(200, 200))
        differences = {"whole network": float((model(batch.tokens_BT) - other(batch.tokens_BT)[0]).abs().max())}
        rng = np.random.default_rng(0)
        for length in range(DEPTH + 1):
            paths = sample_paths(DEPTH, HEADS, length, 5, rng)
            drawn = [np.where(path == SKIP, HEADS, path) for path in paths]
            difference = path_logits(model, batch.tokens_BT, paths) - other(batch.tokens_BT, path_idx_l=drawn)[0]
            differences[f"paths of length {length}"] = float(difference.abs().max())
    return differences


def race(peer: Path, epochs: int) -> dict[str, Any]:
    """Both trained in turn on the same examples: seconds of processor time by step, and to each accuracy."""
    torch.set_num_threads(1)
    models: dict[str, Any] = {"deepwide": ours(), "authors": theirs(peer)}
    steps = {"deepwide": our_step(models["deepwide"]), "authors": their_step(models["authors"])}
    task = make_task("sorting", {"examples": EXAMPLES})
    [held_out] = list(task.evaluation(200, 200))
    spent: dict[str, list[float]] = {name: [] for name in models}
    reached: dict[str, dict[str, Any]] = {name: {} for name in models}
    for number in range(epochs * EXAMPLES // BATCH):
        batch = task.batch(number * BATCH, BATCH, seed=2)
        for name in sorted(steps, reverse=bool(number % 2)):
            start = time.process_time()
            steps[name](batch.tokens_BT, batch.targets)
            spent[name].append(time.process_time() - start)
        if (number + 1) % EVERY == 0:
            for name, model in models.items():
                share = _evaluated(name, model, held_out)
                for goal in GOALS:
                    if share >= goal and str(goal) not in reached[name]:
                        reached[name][str(goal)] = {"steps": number + 1, "seconds": round(sum(spent[name]), 2)}
    ratios = [theirs_ / ours_ for ours_, theirs_ in zip(spent["deepwide"], spent["authors"], strict=True)]
    authors = models["authors"].eval()
    authors.config.no_sub_path = True
    return {
        "steps": len(ratios),
        "milliseconds_per_step": {name: round(1000 * median(each), 2) for name, each in spent.items()},
        "seconds": {name: round(sum(each), 1) for name, each in spent.items()},
        "ratio_authors_over_deepwide": round(median(ratios), 2),
        "accuracy": {name: _evaluated(name, model, held_out) for name, model in models.items()},
        "reached": reached,
        "accuracy_by_path_length": {
            "deepwide": path_accuracies(
                models["deepwide"], held_out.tokens_BT, held_out.targets, 5, 5, np.random.default_rng(0)
            ),
            "authors": _their_paths(authors, held_out),
        },
    }


def _evaluated(name: str, model: Any, batch: Batch) -> float:
    with torch.no_grad():
        logits = model(batch.tokens_BT) if name == "deepwide" else model.eval()(batch.tokens_BT)[0]
    return accuracy(logits, batch.targets)


def _their_paths(model: Any, batch: Batch) -> list[float]:
    rng = np.random.default_rng(0)
    by_length = []
    for length in range(DEPTH + 1):
        shares = []
        for _ in range(5):
            paths = sample_paths(DEPTH, HEADS, length, 5, rng)
            with torch.no_grad():
                drawn = [np.where(path == SKIP, HEADS, path) for path in paths]
                shares.append(accuracy(model(batch.tokens_BT, path_idx_l=drawn)[0], batch.targets))
        by_length.append(float(np.mean(shares)))
    return by_length


def main(arguments: list[str] | None = None) -> None:
    """Measure and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=Path, required=True, help="a checkout of twistedcubic/attention-rank-collapse")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(arguments)
    result = {
        "command": "python -m benchmarks.studies.rank_collapse --peer CHECKOUT",
        "largest_difference_of_logits_on_the_same_weights": same_weights(given.peer),
        **race(given.peer, given.epochs),
        "torch": torch.__version__,
        "note": "one thread, processor time; the machine was busy",
    }
    text = json.dumps(result, indent=1)
    print(text)
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
