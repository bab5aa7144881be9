"""A sweep to start from: a TOML file in which every key is explained."""

from pathlib import Path

from deepwide.errors import DeepwideError
from deepwide.files import write_text
from deepwide.sweeping.spec import Spec, read_spec

EXAMPLE = """\
# Depth against width at equal size, on the Python standard library's own source: a minute or two on a laptop.
name = "NAME"
seeds = [0, 1]               # every shape is trained with each of them, on the same order of data

[run]                        # settings that all cells share
data.source = "python"       # a public set by name, a file or folder of text, or hf:owner/name
batch = 8                    # sequences per step
context = 64                 # tokens per sequence
# model.preset = "llama"     # levine (GPT-2's kind) unless you choose another
# schedule.kind = "constant"

[grid]                       # lists: every combination is a cell
lr = [3e-3]
# "model.positions" = ["learned", "rotary"]   # any other setting, by its full name in quotes

[iso]                        # shapes of equal size: for each size and depth, the width whose exact count is nearest
params = ["100k"]            # non-embedding parameters
depths = [1, 2, 4, 8]
tokens = "200k"              # the same tokens for all; or flops = "1e12", or tokens_per_param = 20
tolerance = 0.2              # how far a count may miss its size
# misses = "skip"            # leave out cells that miss it, instead of refusing the sweep
"""


def write_example(path: Path | str) -> Spec:
    """Write the example as a new file, named after it, and return the spec that it holds."""
    path = Path(path)
    if path.suffix != ".toml":
        raise DeepwideError(f"{path.name} must end in .toml.")
    if path.exists():
        raise DeepwideError(f"{path} exists already: choose another name.")
    name = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in path.stem).strip("-")[:64]
    write_text(path, EXAMPLE.replace("NAME", name or "sweep"))
    return read_spec(path)
