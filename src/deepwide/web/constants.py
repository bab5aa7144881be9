"""What the page computes with, taken from the library: laws, costs, families, public models, colours, words.

The page's programs (*.js) port the arithmetic and nothing else; every number that could change is in this one object.
"""

import json
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.resources import files
from inspect import signature
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, get_args

import numpy as np

from deepwide.answers import Z95
from deepwide.catalogue import all_models
from deepwide.laws import (
    COMPUTE_LAWS,
    DepthLaw,
    JointLaw,
    Law,
    SurfaceLaw,
    bowl_of,
    depth_law,
    pooled_law,
    published_laws,
    transition_law,
)
from deepwide.planning import BudgetKind, Style, plan
from deepwide.settings import LARGEST
from deepwide.shape import FAMILIES, INFERENCE_BYTES, Family, Shape, known_families
from deepwide.web.colours import law_marks

# Constants that the arithmetic needs and that stand behind the doors of their rooms, by the page's name for each. They
# are looked up by name in whichever module of the room has them, so that nothing is typed twice.
PLANNER = {
    "least_params": "LEAST",
    "most_params": "MOST",
    "most_tokens": "MOST_TOKENS",
    "too_far": "TOO_FAR",
    "deepest": "DEEPEST",
    "law_depths": "DEPTHS",
    "head_dims": "HEAD_DIMS",
    "between": "BETWEEN",
    "ideal_head_dim": "IDEAL_HEAD_DIM",
    "ff_stretch": "FF_STRETCH",
    "far": "FAR",
    "most_depths": "MOST_DEPTHS",
    "close": "CLOSE",
    "missing": "MISSING",
    "leaving_the_law": "LEAVING_THE_LAW",
    "dear": "DEAR",
    "narrower_heads": "NARROWER_HEADS",
    "unusual_heads": "UNUSUAL_HEADS",
    "narrow_heads": "NARROW_HEADS",
    "between_heads": "BETWEEN_HEADS",
    "least_heads": "LEAST_HEADS",
    "small_width": "SMALL_WIDTH",
    "tiny_heads": "TINY_HEADS",
    "rounds": "ROUNDS",
    "likely": "LIKELY",
    "kinds": "KINDS",
    "odd_heads": "ODD_HEADS",
    "stretching": "STRETCHING",
    "ratios": "RATIOS",
    "same_size": "SAME_SIZE",
    "equal": "EQUAL",
    "depth_factors": "DEPTH_FACTORS",
    "bandwidth": "BANDWIDTH",
    "layer_us": "LAYER_US",
    "tensor_parallel": "TENSOR_PARALLEL",
    "cost_source": "COST_SOURCE",
    "golden": "GOLDEN",
    "sections": "SECTIONS",
    "widest": "WIDEST",
    "deeper": "DEEPER",
    "near": "NEAR",
    "dearer": "DEARER",
    "more_odd": "MORE_ODD",
    "most_loss": "MOST_LOSS",
    "telling": "TELLING",
}
AUDIT = {
    "within": "WITHIN",
    "small": "SMALL",
    "words": "COST_WORDS",
    "rule": "RULE",
    "rule_without_errors": "RULE_WITHOUT_ERRORS",
    "rule_of_cost": "RULE_OF_COST",
    "tokens_per_param": "TOKENS_PER_PARAM",
}
NO_LIMIT = {"deepest": "DEEPEST", "far_above": "FAR_ABOVE"}  # see `laws.without_limit`
BOWL = {"slack": "SLACK", "largest_log": "LARGEST_LOG", "most": "MOST", "angles": "ANGLES"}
CONFIG = {
    "aliases": "ALIASES",
    "optional_aliases": "OPTIONAL_ALIASES",
    "not_llama_like": "NOT_LLAMA_LIKE",
    "no_transformers": "NO_TRANSFORMERS",
    "layer_kinds": "LAYER_KINDS",
    "attention": "ATTENTION",
    "llama_like": "LLAMA_LIKE",
    "activation_keys": "ACTIVATION_KEYS",
    "plain_activations": "PLAIN_ACTIVATIONS",
    "bias_keys": "BIAS_KEYS",
    "qk_norm_keys": "QK_NORM_KEYS",
    "same_family": "SAME_FAMILY",
    "largest_bytes": "LARGEST_BYTES",
}
# The page plans dense shapes, without a machine, a limit on time or the memory of one device.
NOT_ON_THE_PAGE = (
    "like", "experts", "active", "shared", "granularity", "machine", "latency", "throughput", "recompute"
)  # fmt: skip
BUDGET = "1.3B"  # where the page's dial stands when it opens
SIZES = ("depth", "width", "heads", "kv_heads", "head_dim", "ff_width", "vocab", "context", "tied")
FOLDERS = re.compile(
    r"(?<!\S)\S*/(?=[^\s/])"
)  # a page is for sending: file names stay, the folders of this machine do not


def page_constants(laws: Sequence[str | Path | Law] = ()) -> dict[str, Any]:
    """Everything the page's programs read, ready for JSON; `laws` are fitted laws beside the published ones."""
    offered = _laws(laws)
    return {
        "version": _version(),
        "defaults": plan_defaults(),
        "choices": _choices([row["key"] for row in offered if row["predicts"]]),
        "z95": Z95,
        "largest": LARGEST,
        "planner": constants_of("deepwide.planning", PLANNER) | {"largest": LARGEST},
        "audit": constants_of("deepwide.planning", AUDIT),
        "config": _config(),
        "laws": offered,
        "no_limit": constants_of("deepwide.laws", NO_LIMIT),
        "costs": _costs(),
        "compute_laws": {name: _compute(name) for name in COMPUTE_LAWS},
        "inference_bytes": dict(INFERENCE_BYTES),
        "training_precision": constants_of("deepwide.shape", {"all": "PRECISIONS"})["all"]["mixed"]._asdict(),
        "shape": _shape_defaults(),
        "families": {name: _family(family) for name, family in FAMILIES.items()},
        "models": [
            {
                "name": model.name,
                "depth": model.shape.depth,
                "width": model.shape.width,
                "block": model.params.active_block,
                "published_total": model.published_total,
                "dense": model.shape.experts is None,
            }
            for model in all_models()
        ],
    }


def plan_defaults() -> dict[str, Any]:
    """Every option of a plan with its default; sizes that people write as 128k are text."""
    options = {
        name: each.default
        for name, each in signature(plan).parameters.items()
        if name not in ("budget", "style", *NOT_ON_THE_PAGE)
    }
    style = {name: each.default for name, each in Style.model_fields.items() if name not in NOT_ON_THE_PAGE}
    texts = {name: str(style[name]) for name in ("vocab", "context")}
    return {"budget": BUDGET} | options | {"law": transition_law().name} | style | texts | {"family": None}


def _choices(laws: list[str]) -> dict[str, list[str]]:
    return {
        "kind": [kind for kind in get_args(BudgetKind) if kind != "device"],
        "law": laws,
        "compute": list(COMPUTE_LAWS),
        "inference_precision": list(INFERENCE_BYTES),
        "feed_forward": ["plain", "gated"],
        "tied": ["true", "false"],
        "at_most": ["true"],
        "family": [name for name, family in FAMILIES.items() if not family.has_experts],
    }


def _version() -> str:
    from deepwide import __version__

    return __version__


def constants_of(room: str, names: Mapping[str, str]) -> dict[str, Any]:
    """Constants of a room under the page's names for them; a room that no longer has one is an error, with its name."""
    door = import_module(room)
    modules = [import_module(each.name) for each in walk_packages(door.__path__, f"{room}.")]
    homes = {name: next((m for m in modules if hasattr(m, name)), None) for name in names.values()}
    if lost := [name for name, home in homes.items() if home is None]:
        raise LookupError(f"{room} has no constant {', '.join(lost)} for the page")
    return {ours: getattr(homes[name], name) for ours, name in names.items()}


def _config() -> dict[str, Any]:
    """How configs are read; what the library reads and the page's programs do not, the page refuses."""
    config = constants_of("deepwide.shape", CONFIG)
    aliases = constants_of("deepwide.shape", {"experts": "EXPERT_ALIASES", "latent": "LATENT_ALIASES"})
    more = {"experts": aliases["experts"]["experts"] + aliases["experts"]["active"],
            "latent attention": aliases["latent"]["kv_rank"]}  # fmt: skip
    elsewhere = sorted(set(known_families()) - FAMILIES.keys())
    return config | {"not_llama_like": more | config["not_llama_like"], "elsewhere": elsewhere}


def _laws(extra: Sequence[str | Path | Law]) -> list[dict[str, Any]]:
    rows = [_law(law, law.name) | {"published": True} for law in published_laws().values()]
    for key, (law, file) in own_laws(extra).items():
        about = {"citation": FOLDERS.sub("", law.citation), "published": False, "file": file}
        rows.append(_law(law, key) | about)
    return rows


def own_laws(given: Sequence[str | Path | Law]) -> dict[str, tuple[DepthLaw, str | None]]:
    """Laws that are not published, with their files, by the names under which the page offers them."""
    published = list(published_laws().values())
    own: dict[str, tuple[DepthLaw, str | None]] = {}
    for one in given:
        law = depth_law(one)
        if law in published:
            continue
        file = None if isinstance(one, Law) else Path(one).name
        named = [law.name, *([f"{law.name} ({file})"] if file else []), *(f"{law.name} ({n})" for n in range(2, 999))]
        taken = {other.name for other in published} | own.keys()
        own[next(name for name in named if name not in taken)] = law, file
    return own


def _law(law: Law, key: str) -> dict[str, Any]:
    row = law.model_dump(mode="json") | {"key": key, "predicts": isinstance(law, DepthLaw)} | law_marks(key)
    if not isinstance(law, DepthLaw):
        return row
    bowl = bowl_of(law)
    error = bowl.error or 0.0
    row["own_bowl"] = law.bowl is not None
    row["bowl"] = bowl.model_dump(mode="json") | {
        "covariance": bowl.covariance or ((0.0, 0.0), (0.0, error**2)),
        "reference": _reference(bowl.reference),
    }
    if isinstance(law, SurfaceLaw):
        row |= _surface(law)
    if isinstance(law, JointLaw):
        row |= _table(law)
        del row["draws"], row["lengths"], row["run_tokens"], row["far_length"]
    return row


def _reference(name: str) -> str:
    """The law on whose depth a bowl is centred, as the laws room resolves it: empty for the bowl's own."""
    return name if not name or isinstance(published_laws().get(name), DepthLaw) else transition_law().name


def _surface(law: SurfaceLaw) -> dict[str, Any]:
    """A surface has no formula for its depth: the table by which the law interpolates goes into the page."""
    depth, width = law.optimum(np.logspace(4, 18, 281))
    limits = np.log(sorted(law.errors)).T.tolist() if law.errors else None
    log_params = np.log(law.layer_matrices * depth * width**2)
    return {"table": {"log_params": log_params.tolist(), "log_depth": np.log(depth).tolist()}, "limits": limits}


def _table(law: JointLaw) -> dict[str, Any]:
    """Draws need no formula in the page either: the table of their limits goes into it, read like a surface's."""
    sizes = np.logspace(3, 16, 261)
    value, low, high = (np.log(limit) for limit in law.depth(sizes))
    table = {"log_params": np.log(sizes).tolist(), "log_depth": value.tolist()}
    return {
        "kind": "surface",
        "table": table,
        "limits": [np.log(sizes).tolist(), *((v - value).tolist() for v in (low, high))],
    }


def _costs() -> dict[str, Any]:
    measured = json.loads(files("deepwide.laws").joinpath("gemstones.json").read_text(encoding="utf-8"))
    return constants_of("deepwide.laws", BOWL) | {
        "measured": pooled_law().name,
        "step_time": measured["step_time"]["c2"],
    }


def _compute(name: str) -> dict[str, Any]:
    law = COMPUTE_LAWS[name]
    # optimum(6) has (6 / 6)^… = 1 in it, so what is left is the scale, to the last bit.
    return law._asdict() | {"scale": law.optimum(6.0)[0]}


def _shape_defaults() -> dict[str, Any]:
    """A shape with the default of every field, for configs to be read into."""
    return Shape(depth=1, width=64).model_dump(mode="json")


def _family(family: Family) -> dict[str, Any]:
    fixed = Shape.of(depth=1, width=64, **family.fixed).model_dump(mode="json")
    return {
        "about": family.about,
        "architecture": family.architecture,
        "fixed": family.fixed,
        "template": {name: value for name, value in fixed.items() if name not in SIZES},
        "tied": family.defaults["tie_word_embeddings"],
        "defaults": family.defaults,
        "keys": dict(family.keys),
        "fused": list(family.fused),
        "free_kv": family.free_kv,
        "has_experts": family.has_experts,
        "needs": list(family.needs),
        "ff_may_be_absent": family.ff_may_be_absent,
        "square": family.square,
        "reads": family.reads.__name__ if family.reads else None,
        "writes": family.writes.__name__ if family.writes else None,
    }
