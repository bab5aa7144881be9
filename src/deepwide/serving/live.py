"""Sweeps, studies and measurements: what lies under the served folder or happens now, with streams of events."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, HTTPException, Query, Response
from fastapi.responses import StreamingResponse

from deepwide.answers import Answer
from deepwide.errors import DeepwideError
from deepwide.report import make_report, to_html
from deepwide.serving.children import Child
from deepwide.serving.contents import Contents, Index, SweepPlace
from deepwide.serving.curves import Curve, read_curve
from deepwide.serving.feeds import Feed, IndexFeed, SweepFeed
from deepwide.serving.measuring import BusyError, Measurement, Measurements, MeasurementState, Wanted
from deepwide.serving.pages import REPORT
from deepwide.serving.questions import REFUSALS, reply
from deepwide.studies import StudyResult, estimated_seconds, read_result, studies
from deepwide.sweeping import SweepState

MOST_LISTENERS = 1000
MOST_CURVES = 12
MOST_FITTED = 5000  # runs
MOST_FIT_SECONDS = 600.0
PICTURE = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {}}, "description": "server-sent events"}
}
Kind = Annotated[Literal["joint", "transition", "ridge", "surface"], Query(description="Which law to fit.")]


class FitAnswer(Answer):
    """The fit to a sweep's finished runs, or why there is none."""

    runs: int
    fit: dict[str, Any] | None  # as the library's Fit dumps itself, without its resamples and residuals
    figures: tuple[str, ...] = ()
    error: str = ""


class StudyAbout(Answer):
    """A study that deepwide can run."""

    name: str
    question: str
    citation: str
    link: str
    claims: tuple[str, ...]
    expected_seconds: dict[str, float]


class Live:
    """What the streams share: one feed per sweep, one per folder, fits that were made."""

    def __init__(self, contents: Contents, measurements: Measurements, pause_seconds: float | None = None) -> None:
        self.contents, self.measurements = contents, measurements
        self._pause = {} if pause_seconds is None else {"pause_seconds": pause_seconds}
        self._feeds: dict[str, Feed] = {}
        self._fits: dict[tuple[str, str], tuple[int, FitAnswer, dict[str, str]]] = {}
        self._fitting = asyncio.Lock()
        self._child: Child | None = None

    def index(self) -> IndexFeed:
        """The feed of the folder."""
        feed = self._feeds.setdefault("", IndexFeed(self.contents, **self._pause))
        assert isinstance(feed, IndexFeed)
        return feed

    def sweep(self, key: str) -> tuple[SweepFeed, SweepPlace]:
        """The feed of a sweep, or 404."""
        place = self.contents.sweep(key)
        if place is None:
            raise HTTPException(404, "There is no such sweep under the served folder.")
        feed = self._feeds.get(key)
        if not isinstance(feed, SweepFeed) or feed.place != place:
            feed = self._feeds[key] = SweepFeed(place, self.contents.relative(place.runs), **self._pause)
        return feed, place

    def study(self, key: str) -> Path:
        """The folder of a study, or 404."""
        path = self.contents.study(key)
        if path is None:
            raise HTTPException(404, "There is no such study under the served folder.")
        return path

    def measurement(self, key: str) -> Measurement:
        """A measurement of this server, or 404."""
        one = self.measurements.find(key)
        if one is None:
            raise HTTPException(404, "There is no such measurement: this server may have been started anew.")
        return one

    def stream(self, events: AsyncIterator[bytes]) -> Response:
        """Events to a client, unless too many listen."""
        if sum(len(feed.listeners) for feed in self._feeds.values()) >= MOST_LISTENERS:
            raise HTTPException(503, f"{MOST_LISTENERS} pages are open already: close some.")
        return StreamingResponse(events, media_type="text/event-stream", headers={"x-accel-buffering": "no"})

    async def fit(self, key: str, kind: str) -> FitAnswer:
        """The fit of a sweep, made once for the same runs, whoever asks; one at a time, because each takes seconds."""
        feed, place = await asyncio.to_thread(self.sweep, key)
        async with self._fitting:
            finished = await feed.usable()
            known = self._fits.get((key, kind))
            if known is not None and known[0] == finished:
                return known[1]
            if not finished:
                return FitAnswer(runs=0, fit=None, error="no run has finished.")
            if finished > MOST_FITTED:
                text = f"{finished:,} runs are more than a page fits ({MOST_FITTED:,}): fit them in a terminal."
                return FitAnswer(runs=finished, fit=None, error=text)
            message = await self._work(place.runs, kind, "fit")
            figures = message.get("figures", {})
            answer = FitAnswer(
                runs=finished, fit=message.get("fit"), figures=tuple(figures), error=message.get("text", "")
            )
            self._fits[key, kind] = finished, answer, figures
            return answer

    def fit_figure(self, key: str, kind: str, figure: str) -> str:
        """A picture of a fit that was made, or 404."""
        known = self._fits.get((key, kind))
        if known is None or figure not in known[2]:
            raise HTTPException(404, "There is no such figure: ask for the fit first.")
        return known[2][figure]

    async def report(self, key: str, kind: str) -> str:
        """The report of a sweep as HTML."""
        _, place = await asyncio.to_thread(self.sweep, key)
        async with self._fitting:
            message = await self._work(place.runs, kind, "report")
        if message["kind"] == "refused":
            raise DeepwideError(message["text"])
        return str(message["html"])

    async def _work(self, runs: Path, kind: str, what: str) -> dict[str, Any]:
        """What a child answers; a refusal if it says nothing."""
        request = {"runs": str(runs), "kind": kind, "what": what}
        self._child = child = await Child.start("deepwide.serving.reporting", request)
        try:
            async with asyncio.timeout(MOST_FIT_SECONDS):
                async for message in child.said():
                    return message
            return {"kind": "refused", "text": f"the {what} ended without a word: it may have run out of memory."}
        except TimeoutError:
            return {"kind": "refused", "text": f"the {what} took more than {MOST_FIT_SECONDS:.0f} seconds."}
        finally:
            await child.end()
            self._child = None

    async def close(self) -> None:
        """End every stream and every measurement."""
        for feed in self._feeds.values():
            feed.close()
        if self._child is not None:
            await self._child.end()
        await self.measurements.close()


def live_routes(live: Live) -> APIRouter:
    """The routes of what lives under the folder."""
    router = APIRouter(prefix="/api", responses=REFUSALS)
    contents, measurements = live.contents, live.measurements

    @router.get("/index", response_model=Index, tags=["sweeps"])
    def get_index() -> Response:
        """Every sweep and study under the served folder."""
        return reply(contents.index())

    @router.get("/index/events", tags=["sweeps"], response_class=StreamingResponse, responses=STREAM)
    async def get_index_events() -> Response:
        """The same, again whenever it changes."""
        return live.stream(live.index().listen())

    @router.get("/sweeps/{key}", response_model=SweepState, tags=["sweeps"])
    async def get_sweep(key: str) -> Response:
        """Where every cell of a sweep stands."""
        feed, _ = await asyncio.to_thread(live.sweep, key)
        return Response(await feed.state_json(), media_type="application/json")

    @router.get("/sweeps/{key}/events", tags=["sweeps"], response_class=StreamingResponse, responses=STREAM)
    async def get_sweep_events(key: str) -> Response:
        """Every cell, then the changes, live: `begin`, then `change` with a SweepChange."""
        feed, _ = await asyncio.to_thread(live.sweep, key)
        return live.stream(feed.listen())

    @router.get("/sweeps/{key}/curves", tags=["sweeps"])
    async def get_sweep_curves(
        key: str, run: Annotated[list[str], Query(min_length=1, max_length=MOST_CURVES)]
    ) -> list[Curve]:
        """The learning curves of some runs."""
        feed, place = await asyncio.to_thread(live.sweep, key)
        known = await feed.ids()
        if strange := [one for one in run if one not in known]:
            raise HTTPException(404, f"The sweep has no run {strange[0][:40]!r}.")
        return await asyncio.to_thread(lambda: [read_curve(place.runs, one) for one in run])

    @router.get("/sweeps/{key}/fit", tags=["sweeps"], response_model=FitAnswer)
    async def get_sweep_fit(key: str, kind: Kind = "joint") -> Response:
        """The law that the finished runs of a sweep give."""
        return reply(await live.fit(key, kind))

    @router.get("/sweeps/{key}/fit/{figure}.svg", tags=["sweeps"], response_class=Response)
    async def get_fit_figure(key: str, figure: str, kind: Kind = "joint") -> Response:
        """A picture of the fit that was asked for before."""
        return _picture(live.fit_figure(key, kind, figure))

    @router.get("/sweeps/{key}/report", tags=["sweeps"], response_class=Response)
    async def get_sweep_report(key: str, kind: Kind = "joint") -> Response:
        """The sweep as `deepwide report` writes it: one file to send."""
        return _report(await live.report(key, kind))

    @router.get("/studies/known", tags=["studies"])
    def get_known_studies() -> list[StudyAbout]:
        """The studies that deepwide can run."""
        return [
            StudyAbout(
                name=one.name,
                question=one.question,
                citation=one.source.citation,
                link=one.source.link,
                claims=tuple(claim.statement for claim in one.claims),
                expected_seconds=estimated_seconds(one),
            )
            for one in studies().values()
        ]

    @router.get("/studies/{key}", response_model=StudyResult, tags=["studies"])
    def get_study(key: str) -> Response:
        """How a study ended: what was measured, and a verdict on each claim."""
        return reply(read_result(live.study(key)))

    @router.get("/studies/{key}/report", tags=["studies"], response_class=Response)
    def get_study_report(key: str) -> Response:
        """The study as `deepwide report` writes it: one file to send."""
        return _report(to_html(make_report(live.study(key))))

    @router.get("/measurements", tags=["separation"])
    async def get_measurements() -> list[MeasurementState]:
        """The measurements of this server, newest first."""
        return measurements.states()

    busy: dict[int | str, dict[str, Any]] = {429: {**REFUSALS[422], "description": "enough of them are running"}}

    @router.post("/measurements", tags=["separation"], status_code=202, response_model=MeasurementState, responses=busy)
    async def post_measurement(wanted: Annotated[Wanted, Body()]) -> Response:
        """Measure a small network, in a process of its own."""
        try:
            one = await measurements.start(wanted)
        except BusyError as error:
            raise HTTPException(429, str(error)) from None
        return reply(one.answer(), 202)

    @router.get("/measurements/{key}", tags=["separation"], response_model=MeasurementState)
    async def get_measurement(key: str) -> Response:
        """Where a measurement stands."""
        return reply(live.measurement(key).answer())

    @router.get("/measurements/{key}/events", tags=["separation"], response_class=StreamingResponse, responses=STREAM)
    async def get_measurement_events(key: str) -> Response:
        """Its progress, live, until it ends."""
        return live.stream(live.measurement(key).events())

    @router.delete("/measurements/{key}", tags=["separation"], response_model=MeasurementState)
    async def delete_measurement(key: str) -> Response:
        """Cancel it: when this is answered, its process has ended."""
        one = live.measurement(key)
        await one.cancel()
        return reply(one.answer())

    return router


def _picture(svg: str) -> Response:
    """An SVG in which nothing can run, even opened by itself."""
    headers = {"content-security-policy": PICTURE}
    return Response(svg.encode("utf-8", "replace"), media_type="image/svg+xml", headers=headers)


def _report(html: str) -> Response:
    return Response(
        html.encode("utf-8", "replace"), media_type="text/html", headers={"content-security-policy": REPORT}
    )
