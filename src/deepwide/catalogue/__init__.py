"""Public models as data, and the one place that turns what a user names into a shape."""

from deepwide.catalogue.models import Model, all_models, find_model, nearest_models, search_models
from deepwide.catalogue.named import NamedShape, find_shape

__all__ = ["Model", "NamedShape", "all_models", "find_model", "find_shape", "nearest_models", "search_models"]
