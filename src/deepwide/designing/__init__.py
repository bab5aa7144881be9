"""Which runs to do next: for a target and a budget, those that should shrink its interval most."""

from functools import partial
from typing import TYPE_CHECKING

from deepwide import offered

if TYPE_CHECKING:
    from deepwide.designing.answer import HEAD as HEAD
    from deepwide.designing.answer import Design as Design
    from deepwide.designing.answer import DesignedRun as DesignedRun
    from deepwide.designing.answer import Stage as Stage
    from deepwide.designing.answer import show_high as show_high
    from deepwide.designing.answer import show_ratio as show_ratio
    from deepwide.designing.auto import run_designs as run_designs
    from deepwide.designing.choosing import Pool as Pool
    from deepwide.designing.deciding import Decision as Decision
    from deepwide.designing.deciding import Goalpost as Goalpost
    from deepwide.designing.deciding import decide as decide
    from deepwide.designing.design import sweep_design as sweep_design

_HOME = {
    "HEAD": "answer",
    "Decision": "deciding",
    "Design": "answer",
    "DesignedRun": "answer",
    "Goalpost": "deciding",
    "Pool": "choosing",
    "Stage": "answer",
    "decide": "deciding",
    "run_designs": "auto",
    "show_high": "answer",
    "show_ratio": "answer",
    "sweep_design": "design",
}
__all__ = list(_HOME)
__getattr__ = partial(offered, __name__, _HOME)
