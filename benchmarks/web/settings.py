"""Random settings of a plan, and the lines that the command line prints for them."""

import io
import random
import re
from typing import Any

from rich.console import Console

from deepwide.cli.tables import show_plan
from deepwide.errors import DeepwideError
from deepwide.laws import Bowl, DepthLaw, RidgeLaw, SurfaceLaw, TransitionLaw
from deepwide.planning import plan
from deepwide.shape import FAMILIES
from deepwide.web import plan_defaults

DEFAULTS = plan_defaults()
DENSE = [name for name, family in FAMILIES.items() if not family.has_experts]
VOCABULARIES = ("2000", "32000", "50304", "50257", "128256", "151936", "256k", "64Ki")
CONTEXTS = ("512", "1024", "2048", "4096", "8192", "8Ki", "32768", "131072", "1M")
# Laws as a fit saves them, one of each kind; their numbers are made up.
FITTED: dict[str, DepthLaw] = {
    law.name: law
    for law in (
        RidgeLaw(name="own ridge", base_a=None, base_b=None, shift=3.1, drift=0.21, centre_params=3e8,
                 covariance=((0.003, 0.0004), (0.0004, 0.002)), fitted_block_params=(1e6, 5e9), growth_error=0.2,
                 bowl=Bowl(curvature=0.024, error=0.004, x_range=(-1.5, 1.5)), cautions=("only 4 sizes",)),
        RidgeLaw(name="own shift", base_a=5.039, base_b=0.0555, shift=-0.2, centre_params=1e8, status="fitted",
                 bowl=Bowl(slope=0.001, curvature=0.01, x_range=(-1, 1), sizes=(1e7, 1e9), reference="levine",
                           covariance=((1e-5, 1e-6), (1e-6, 4e-6)))),
        SurfaceLaw(name="own surface", width_term=(1.0, 0.21), depth_term=(-0.2, 0.5), params_term=(6.1, 0.36),
                   tokens_term=(10.4, 0.49), floor=0.43, layer_matrices=12, embedding_rows=50304, tokens_per_param=20,
                   errors=((1e7, 0.7, 1.5), (1e10, 0.6, 1.8)), fitted_block_params=(1e7, 1e10)),
        TransitionLaw(name="own transition", a=4.9, b=0.06, fitted_block_params=(1e6, 1e9)),
    )
}  # fmt: skip
LAWS = ("levine", "levine", "pooled", "gemstones", "nanochat", "liu", "depth-delusion", *FITTED)


def random_settings(generator: random.Random) -> dict[str, Any]:
    """One setting of every dial: half of the options at their default, budgets log-uniform from 10M to 10T."""
    pick, chance = generator.choice, generator.random
    settings = dict(DEFAULTS)
    settings["kind"] = kind = pick(("block", "block", "total", "flops", "memory"))
    size = 10 ** generator.uniform(7, 13)
    if kind == "flops":
        settings["budget"] = f"{120 * size * size:.{pick((1, 2, 3))}e}"
        settings["compute"] = pick(("epoch", "hoffmann"))
    elif kind == "memory":
        settings["budget"] = f"{2 * size / 1e9:.{pick((2, 3))}f}{pick(('GB', 'GiB', 'G'))}"
        settings["inference_precision"] = pick(("fp32", "bf16", "fp16", "fp8", "int8", "int4"))
        settings["batch"] = pick((1, 1, 4, 16))
    else:
        settings["budget"] = pick((f"{size / 1e6:.2f}M", f"{size:.2e}", str(round(size)), f"{size / 1e9:.3f}B"))
    settings["law"] = pick(LAWS)
    some = {
        "vocab": lambda: pick((*VOCABULARIES, str(generator.randint(100, 300_000)))),
        "context": lambda: pick((*CONTEXTS, str(generator.randint(64, 100_000)))),
        "kv_heads": lambda: pick((1, 2, 4, 8, 8, 8, 3, 16)),
        "head_dim": lambda: pick((32, 64, 80, 96, 128, 256)),
        "feed_forward": lambda: pick(("plain", "gated")),
        "family": lambda: pick(DENSE),
        "tied": lambda: pick((True, False)),
        "ff_ratio": lambda: pick((2.0, 2.5, 3.5, 4.0, round(generator.uniform(1, 8), 2))),
        "width_multiple": lambda: pick((32, 64, 100, 128, 256, 3000)),
        "tensor_parallel": lambda: pick((2, 4, 8, 8, 6, 16)),
        "pipeline_stages": lambda: pick((2, 4, 8, 5, 16)),
        "data_parallel": lambda: pick((2, 4, 8, 3, 64)),
        "zero": lambda: pick((1, 2, 3)),
        "batch": lambda: pick((2, 16)),
        "tokens": lambda: pick(("10B", "1T", "15T")),
        "at_most": lambda: True,
        "depth": lambda: pick((1, 8, 12, 24, 32, 48, 80, 120)),
        "width": lambda: pick((256, 768, 1024, 2048, 4096, 8192, 1000)),
        "bandwidth": lambda: pick(("900GB", "8TB", "3.35TB/s")),
        "layer_us": lambda: pick((0.0, 3.5, 25.0)),
    }  # fmt: skip
    for name, value in some.items():
        likely = 0.06 if name in ("depth", "width", "ff_ratio", "tokens", "at_most", "family", "head_dim") else 0.22
        if chance() < likely and not (name == "width" and settings["depth"]):
            settings[name] = value()
    return settings


def printed(settings: dict[str, Any]) -> list[str]:
    """What `deepwide plan` prints for settings, without blank lines and rules; or the sentence of its refusal."""
    chosen = FITTED.get(settings["law"], settings["law"])
    try:
        answer = plan(
            settings["budget"], **{k: v for k, v in settings.items() if k not in ("budget", "law")}, law=chosen
        )
    except DeepwideError as error:
        return [f"refused: {error}"]
    return lines_of(lambda console: show_plan(answer, console))[:-1]  # the last line names options


def lines_of(show: Any) -> list[str]:
    """The lines that a function prints to a console too wide to break any, in single spaces."""
    text = io.StringIO()
    show(Console(file=text, width=4000, highlight=False, color_system=None))
    lines = (re.sub(r"\s+", " ", line).strip() for line in text.getvalue().splitlines())
    return [line for line in lines if line and set(line) != {"─"}]
