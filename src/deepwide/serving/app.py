"""The application: pages, questions, what is live, and one way to refuse."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from deepwide import __version__
from deepwide.errors import DeepwideError, one_line
from deepwide.laws import Law
from deepwide.serving.contents import Contents
from deepwide.serving.guard import Guard
from deepwide.serving.live import Live, live_routes
from deepwide.serving.measuring import Measurements
from deepwide.serving.pages import page_routes
from deepwide.serving.questions import Refusal, offered_laws, question_routes, reply


def make_app(
    folder: str | Path = ".",
    *,
    laws: Sequence[str | Path | Law] = (),
    names: Sequence[str] = (),
    exposed: bool = False,
    measurements: Measurements | None = None,
    pause_seconds: float | None = None,
) -> FastAPI:
    """The pages of a folder's sweeps and studies as an ASGI application.

    It answers to loopback addresses, `localhost` and `names`; `exposed`, to every address of this machine. `laws` are
    offered beside the published ones. `measurements` bounds what may be measured, `pause_seconds` is how often live
    pages are brought up to date.
    """
    contents = Contents(folder)
    measuring = measurements or Measurements()
    live = Live(contents, measuring, pause_seconds)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await live.close()

    app = FastAPI(
        title="deepwide",
        version=__version__,
        description="How deep and how wide should a transformer be, and how do you know? Reads only.",
        docs_url=None,  # its page would load programs from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.live = live
    app.include_router(page_routes(laws, live.study))
    app.include_router(question_routes(offered_laws(laws), contents, measuring))
    app.include_router(live_routes(live))
    app.add_middleware(Guard, names=tuple(names), exposed=exposed)
    app.add_exception_handler(DeepwideError, _refuse)
    app.add_exception_handler(RequestValidationError, _refuse)
    app.add_exception_handler(HTTPException, _refuse)
    return app


async def _refuse(_: Request, error: Exception) -> Response:
    """Every refusal is one sentence."""
    if isinstance(error, HTTPException):
        status, sentence = error.status_code, str(error.detail)
    elif isinstance(error, RequestValidationError):
        status, sentence = 422, _first(error.errors())
    else:
        status, sentence = 422, str(error)
    return reply(Refusal(error=one_line(sentence.encode("utf-8", "replace").decode())), status)


def _first(problems: Sequence[Any]) -> str:
    """The first of pydantic's complaints."""
    problem = problems[0]
    where = ".".join(str(part) for part in problem["loc"][1:]) or "the request"
    return f"{where[:80]}: {problem['msg'][:200]}."
