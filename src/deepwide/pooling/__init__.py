"""What all public depth × width data say together: sets measured by one method, pooled, and laws judged on them."""

from functools import partial
from typing import TYPE_CHECKING

from deepwide import offered

if TYPE_CHECKING:
    from deepwide.pooling.judging import Judgement as Judgement
    from deepwide.pooling.judging import judge_laws as judge_laws
    from deepwide.pooling.measuring import add_evidence as add_evidence
    from deepwide.pooling.measuring import measure_set as measure_set
    from deepwide.pooling.random_effects import RandomEffects as RandomEffects
    from deepwide.pooling.random_effects import combine as combine
    from deepwide.pooling.sets import EvidenceSet as EvidenceSet
    from deepwide.pooling.sets import load_set as load_set
    from deepwide.pooling.sets import save_set as save_set
    from deepwide.pooling.sets import shipped_sets as shipped_sets
    from deepwide.pooling.together import Evidence as Evidence
    from deepwide.pooling.together import evidence as evidence

_HOME = {
    "Evidence": "together",
    "EvidenceSet": "sets",
    "Judgement": "judging",
    "RandomEffects": "random_effects",
    "add_evidence": "measuring",
    "combine": "random_effects",
    "evidence": "together",
    "judge_laws": "judging",
    "load_set": "sets",
    "measure_set": "measuring",
    "save_set": "sets",
    "shipped_sets": "sets",
}
__all__ = list(_HOME)
__getattr__ = partial(offered, __name__, _HOME)
