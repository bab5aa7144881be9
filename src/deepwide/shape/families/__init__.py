"""Families of public models: how each writes a Shape in its Hugging Face `config.json`."""

from deepwide.shape.families.family import LLAMA_LIKE, Family, Fields
from deepwide.shape.families.table import FAMILIES, family_named

__all__ = ["FAMILIES", "LLAMA_LIKE", "Family", "Fields", "family_named"]
