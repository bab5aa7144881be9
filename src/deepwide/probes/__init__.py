"""Measurements on networks, each a small function held against an independent reference. Loaded when first used."""

from functools import partial
from typing import TYPE_CHECKING

from deepwide import offered

if TYPE_CHECKING:
    from deepwide.probes.attending import NEITHER as NEITHER
    from deepwide.probes.attending import antecedents_hit as antecedents_hit
    from deepwide.probes.attending import entropies as entropies
    from deepwide.probes.attending import head_distances as head_distances
    from deepwide.probes.attending import looked_at as looked_at
    from deepwide.probes.attending import looks_more as looks_more
    from deepwide.probes.attending import most_attended as most_attended
    from deepwide.probes.attending import offset_guess as offset_guess
    from deepwide.probes.attending import scaled_to_plane as scaled_to_plane
    from deepwide.probes.attending import word_attention as word_attention
    from deepwide.probes.circuits import ROUTES as ROUTES
    from deepwide.probes.circuits import HeadWeights as HeadWeights
    from deepwide.probes.circuits import composition_scores as composition_scores
    from deepwide.probes.circuits import copying_scores as copying_scores
    from deepwide.probes.circuits import head_weights as head_weights
    from deepwide.probes.circuits import random_composition as random_composition
    from deepwide.probes.collapse import AttentionLayer as AttentionLayer
    from deepwide.probes.collapse import attention_collapse as attention_collapse
    from deepwide.probes.collapse import collapse_bound as collapse_bound
    from deepwide.probes.collapse import composite_norm as composite_norm
    from deepwide.probes.collapse import random_layers as random_layers
    from deepwide.probes.collapse import relative_residual as relative_residual
    from deepwide.probes.heads import ablation as ablation
    from deepwide.probes.heads import attention_importance as attention_importance
    from deepwide.probes.heads import attention_patterns as attention_patterns
    from deepwide.probes.heads import in_context_score as in_context_score
    from deepwide.probes.heads import induction_scores as induction_scores
    from deepwide.probes.heads import previous_token_scores as previous_token_scores
    from deepwide.probes.heads import repeated_blocks as repeated_blocks
    from deepwide.probes.heads import token_losses as token_losses
    from deepwide.probes.hops import attention_to as attention_to
    from deepwide.probes.paths import SKIP as SKIP
    from deepwide.probes.paths import all_paths as all_paths
    from deepwide.probes.paths import count_paths as count_paths
    from deepwide.probes.paths import exact_path_sum as exact_path_sum
    from deepwide.probes.paths import path_accuracies as path_accuracies
    from deepwide.probes.paths import path_logits as path_logits
    from deepwide.probes.paths import sample_paths as sample_paths
    from deepwide.probes.sensitivity import Move as Move
    from deepwide.probes.sensitivity import gradient_norms as gradient_norms
    from deepwide.probes.sensitivity import output_change as output_change
    from deepwide.probes.stream import stream_residuals as stream_residuals
    from deepwide.probes.surgery import remove_parts as remove_parts

_HOME = {
    "AttentionLayer": "collapse",
    "HeadWeights": "circuits",
    "Move": "sensitivity",
    "NEITHER": "attending",
    "ROUTES": "circuits",
    "SKIP": "paths",
    "ablation": "heads",
    "all_paths": "paths",
    "antecedents_hit": "attending",
    "attention_collapse": "collapse",
    "attention_importance": "heads",
    "attention_patterns": "heads",
    "attention_to": "hops",
    "collapse_bound": "collapse",
    "composite_norm": "collapse",
    "composition_scores": "circuits",
    "copying_scores": "circuits",
    "count_paths": "paths",
    "entropies": "attending",
    "exact_path_sum": "paths",
    "gradient_norms": "sensitivity",
    "head_distances": "attending",
    "head_weights": "circuits",
    "in_context_score": "heads",
    "induction_scores": "heads",
    "looked_at": "attending",
    "looks_more": "attending",
    "most_attended": "attending",
    "offset_guess": "attending",
    "output_change": "sensitivity",
    "path_accuracies": "paths",
    "path_logits": "paths",
    "previous_token_scores": "heads",
    "random_composition": "circuits",
    "random_layers": "collapse",
    "relative_residual": "collapse",
    "remove_parts": "surgery",
    "repeated_blocks": "heads",
    "sample_paths": "paths",
    "scaled_to_plane": "attending",
    "stream_residuals": "stream",
    "token_losses": "heads",
    "word_attention": "attending",
}
__all__ = list(_HOME)
__getattr__ = partial(offered, __name__, _HOME)
