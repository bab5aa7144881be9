"""Family: how one `model_type` of Hugging Face writes a Shape in its `config.json`.

A family is data: which keys hold which fields, which fields all its members share, what a missing key means
(transformers leaves out keys equal to the class default). The few families with rules of their own add two
functions. Whether a family can express a shape is not guessed: it is written, read back and compared.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from deepwide.errors import DeepwideError, quoted
from deepwide.shape.shape import Shape

Config = Mapping[str, Any]
Fields = dict[str, Any]

STANDARD: dict[str, str] = {
    "depth": "num_hidden_layers",
    "width": "hidden_size",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "ff_width": "intermediate_size",
    "vocab": "vocab_size",
    "context": "max_position_embeddings",
    "tied": "tie_word_embeddings",
}
GPT2_KEYS = STANDARD | {
    "depth": "n_layer",
    "width": "n_embd",
    "heads": "n_head",
    "ff_width": "n_inner",
    "context": "n_positions",
}
REQUIRED = ("depth", "width", "heads", "vocab")

LLAMA_LIKE: Fields = {
    "ff": "gated",
    "positions": "rotary",
    "norm": "rmsnorm",
    "qkv_bias": False,
    "out_bias": False,
    "ff_bias": False,
}


@dataclass(frozen=True)
class Family:
    """One `model_type`."""

    name: str
    architecture: str
    about: str
    fixed: Fields  # Shape fields all members share
    defaults: Fields  # config keys a file may leave out
    keys: Mapping[str, str] = field(default_factory=lambda: STANDARD)
    fused: tuple[str, ...] = ()  # Shape fields that no key holds: kv_heads = heads, head_dim = width / heads
    free_kv: bool = True  # False: one key/value head per head
    has_experts: bool = False
    needs: tuple[str, ...] = ()  # keys without a default that the rules of the family read
    ff_may_be_absent: bool = False  # then it is 4·width
    square: bool = False  # transformers insists that heads divide width
    reads: Callable[[Config, Fields], Fields] | None = None
    writes: Callable[[Shape], Fields] | None = None

    def read(self, config: Config, given: Config | None = None) -> Shape:
        """The shape a config of this family describes; `given` are Shape fields that fill what it lacks."""
        # An absent key means the default; an explicit null means none, as in transformers.
        known = {key: value for key, value in (self.defaults | dict(config)).items() if value is not None}
        fields: Fields = dict(self.fixed)
        for name, key in self.keys.items():
            # transformers' own names are accepted beside the family's, as its attribute_map does
            aliases = (STANDARD[name], "n_embed") if name == "width" else (STANDARD[name],)
            value = next((config[k] for k in (key, *aliases) if config.get(k) is not None), known.get(key))
            if value is not None and name not in self.fused:
                fields[name] = value
        for name, value in (given or {}).items():
            if name in self.keys and name not in self.fused:
                fields.setdefault(name, value)
        required = REQUIRED if self.ff_may_be_absent else (*REQUIRED, "ff_width")
        missing = [f"{name} ({self.keys[name]})" for name in required if name not in fields]
        missing += [key for key in self.needs if key not in known]
        if missing:
            raise DeepwideError(f"this {self.name} config lacks {', '.join(missing)}.")
        if self.reads:
            fields |= self.reads(known, fields)
        return Shape.of(**fields)

    def write(self, shape: Shape) -> Fields:
        """The config of `shape` in this family; refuses a shape the family cannot express."""
        config: Fields = {"architectures": [self.architecture], "model_type": self.name}
        config |= {key: getattr(shape, name) for name, key in self.keys.items() if name not in self.fused}
        if self.writes:
            config |= self.writes(shape)
        try:
            reread = self.read(config)
        except DeepwideError as error:
            raise DeepwideError(f"the {self.name} family cannot express this shape: {error}") from None
        wrong = [
            f"{name} is {getattr(shape, name)!r}, {self.name} has {getattr(reread, name)!r}"
            for name in Shape.model_fields
            if getattr(reread, name) != getattr(shape, name)
        ]
        if self.square and shape.width % shape.heads:
            wrong.append(f"heads ({shape.heads}) do not divide width ({shape.width}), as {self.name} needs")
        if wrong:
            raise DeepwideError(f"the {self.name} family cannot express this shape: {'; '.join(wrong)}.")
        return config


def flag(known: Config, key: str) -> bool:
    """A key that is true or false; absent means false."""
    value = known.get(key, False)
    if not isinstance(value, bool):
        raise DeepwideError(f"{key} must be true or false, not {quoted(value)}.")
    return value


def whole(value: Any, name: str, most: int = 10**9, *, zero: int = 0) -> int:
    """A whole number; `zero` is what 0 stands for."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise DeepwideError(f"{name} must be a whole number from 0 to {most}, not {quoted(value)}.")
    return value or zero


def layers(fields: Fields) -> int:
    """How many layers a config has."""
    return whole(fields["depth"], "the number of layers", most=100_000)
