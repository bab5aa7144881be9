"""Parameters of any config that transformers knows, counted by building the model without memory.

The model is built on torch's meta device by the installed transformers, from the config's `model_type` alone: no
weights are loaded, nothing is fetched, and no code that comes with a model is run.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deepwide.answers import Answer, Note
from deepwide.errors import DeepwideError, needs, quoted
from deepwide.shape.config import load_config


class BuiltCount(Answer):
    """What transformers builds from a config. With encoders for pictures or sound, those are in it too."""

    name: str
    family: str
    architecture: str  # the class that was built
    transformers: str  # its version
    total: int
    embedding: int  # of tokens
    head: int  # 0 when tied
    experts: int  # routed ones, by their names
    other: int
    notes: list[Note]

    def __str__(self) -> str:
        return f"{self.name}: {self.total:,} parameters of {self.architecture}"

    __repr__ = __str__

    def rows(self) -> list[dict[str, Any]]:
        """One row per part."""
        return [{"part": part, "parameters": getattr(self, part)} for part in (*PARTS, "total")]


PARTS = ("embedding", "experts", "other", "head")


def build_count(source: str | Path | Mapping[str, Any], *, network: bool = False) -> BuiltCount:
    """Count the parameters of a config by building it: a parsed mapping, a file, a folder, or (`network`) a hub id."""
    for module in ("torch", "transformers"):
        needs(module, "dev")
    config = dict(source if isinstance(source, Mapping) else load_config(source, network))
    name = "config" if isinstance(source, Mapping) else str(source)
    family = config.pop("model_type", None)
    model, version = _build(family, config)
    inside, outside = model.get_input_embeddings(), model.get_output_embeddings()
    looked_up = {id(p) for p in inside.parameters()} if inside is not None else set()
    last = {id(p) for p in outside.parameters()} if outside is not None else set()
    counts = dict.fromkeys(PARTS, 0)
    for path, parameter in model.named_parameters():
        at = id(parameter)
        part = "embedding" if at in looked_up else "head" if at in last else "other"
        counts["experts" if part == "other" and ".experts." in path else part] += parameter.numel()
    text = f"built on the meta device by transformers {version}; FLOPs and memory are not known this way"
    return BuiltCount(
        name=name,
        family=str(family),
        architecture=type(model).__name__,
        transformers=version,
        total=sum(counts.values()),
        notes=[Note.of("built", text, transformers=version)],
        **counts,
    )


def _decoded(value: Any) -> Any:
    """transformers writes an infinite number as {"__float__": "Infinity"}."""
    if isinstance(value, Mapping) and set(value) == {"__float__"}:
        return float(str(value["__float__"]))
    return [_decoded(each) for each in value] if isinstance(value, list) else value


def _build(family: Any, config: dict[str, Any]) -> tuple[Any, str]:
    import logging
    import warnings

    import torch
    import transformers

    known = transformers.CONFIG_MAPPING
    if not isinstance(family, str) or family not in known:
        raise DeepwideError(
            f"transformers {transformers.__version__} knows no family {quoted(family)}: a newer version may."
        )
    config = {k: _decoded(v) for k, v in config.items() if k not in ("auto_map", "quantization_config")}
    quiet = logging.getLogger("transformers")
    level = quiet.level
    try:
        quiet.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loaded = known[family].from_dict({"model_type": family} | config)
            with torch.device("meta"):
                auto: Any = transformers.AutoModelForCausalLM
                model = auto.from_config(loaded, trust_remote_code=False)
    except Exception as error:  # whatever a config can make transformers stumble over
        what = " ".join(str(error).split())[:160] or type(error).__name__
        raise DeepwideError(f"transformers cannot build this {family} config: {what}.") from None
    finally:
        quiet.setLevel(level)
    return model, str(transformers.__version__)
