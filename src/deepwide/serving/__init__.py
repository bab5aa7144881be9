"""The pages with a server behind them: plan and audit, separation, sweeps live, studies. Reads only, on this machine.

`serve` runs it, `make_app` is the application for a server of your own. Names are loaded when first used.
"""

from functools import partial
from typing import TYPE_CHECKING

from deepwide import offered

if TYPE_CHECKING:
    from deepwide.serving.app import make_app as make_app
    from deepwide.serving.server import PORT as PORT
    from deepwide.serving.server import Address as Address
    from deepwide.serving.server import serve as serve

_HOME = {
    "Address": "server",
    "PORT": "server",
    "make_app": "app",
    "serve": "server",
}
__all__ = list(_HOME)
__getattr__ = partial(offered, __name__, _HOME)
