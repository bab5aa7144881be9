"""Questions that the library answers at once: plan, audit, count, bounds.

No text from a client reaches a function that could take it for a path: a model is looked up in the catalogue, a law
among those that are offered, a compute law among the published ones.
"""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from deepwide.answers import Answer
from deepwide.catalogue import all_models, find_model
from deepwide.errors import DeepwideError, did_you_mean
from deepwide.laws import COMPUTE_LAWS, DepthLaw, Law, published_laws
from deepwide.planning import Audit, BudgetKind, Count, Plan, audit, count, plan
from deepwide.separation import Bounds, BoundsCurves, Certificate, DimensionCount
from deepwide.serving.contents import Contents
from deepwide.serving.measuring import Measurements
from deepwide.shape import read_config
from deepwide.web import own_laws, plan_defaults

DEFAULTS = plan_defaults()
Text = Annotated[str, Field(max_length=80)]
Whole = Annotated[int, Field(ge=1, le=10**15)]
Depth = Annotated[int, Query(ge=1, le=64, description="Layers.")]
Width = Annotated[int, Query(ge=1, le=10**9, description="Model width.")]
Heads = Annotated[int, Query(ge=1, le=10**6, description="Attention heads.")]


class Refusal(Answer):
    """Why a question has no answer, in one sentence."""

    error: str


REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Refusal, "description": words}
    for status, words in {
        400: "what was sent cannot be read",
        403: "the request comes from another site",
        404: "there is no such thing",
        413: "what was sent is too large",
        421: "the host named is not this server",
        422: "a value is not allowed, or the question has no answer",
    }.items()
}


class PlanQuestion(BaseModel):
    """The settings of a plan, as `deepwide.plan` takes them and as the page has them in its address."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    budget: Text = DEFAULTS["budget"]
    kind: BudgetKind = "block"
    law: Text | None = None
    compute: Text = DEFAULTS["compute"]
    tokens: Text | None = None
    depth: Whole | None = None
    width: Whole | None = None
    at_most: bool = False
    inference_precision: Text = DEFAULTS["inference_precision"]
    batch: Whole = DEFAULTS["batch"]
    bandwidth: Text = str(DEFAULTS["bandwidth"])
    layer_us: Annotated[float, Field(ge=0, le=1e9)] = DEFAULTS["layer_us"]
    vocab: Text = DEFAULTS["vocab"]
    context: Text = DEFAULTS["context"]
    tied: bool | None = None
    head_dim: Whole | None = None
    kv_heads: Whole | None = None
    feed_forward: Literal["plain", "gated"] | None = None
    ff_ratio: Annotated[float, Field(gt=0, le=64)] | None = None
    family: Text | None = None
    width_multiple: Whole | None = None
    tensor_parallel: Whole = 1
    pipeline_stages: Whole = 1
    data_parallel: Whole = 1
    zero: Annotated[int, Field(ge=0, le=3)] = 0


class ModelName(Answer):
    """A public model of the catalogue."""

    name: str
    organisation: str
    family: str | None


def offered_laws(given: Sequence[str | Path | Law]) -> dict[str, DepthLaw]:
    """Laws by the names under which the page offers them: published ones, and those that were given."""
    published = {name: law for name, law in published_laws().items() if isinstance(law, DepthLaw)}
    return published | {name: law for name, (law, _) in own_laws(given).items()}


def reply(answer: Answer, status: int = 200) -> Response:
    """An answer of the library as it dumps itself."""
    return Response(answer.model_dump_json(), status_code=status, media_type="application/json")


def question_routes(laws: Mapping[str, DepthLaw], contents: Contents, measurements: Measurements) -> APIRouter:
    """The routes of all questions."""
    router = APIRouter(prefix="/api", responses=REFUSALS)
    one_at_a_time = threading.Lock()  # python-flint has one precision for all threads

    def law_named(name: str | None) -> DepthLaw | None:
        if name is not None and name not in laws:
            raise DeepwideError(f"no law '{name[:60]}': {did_you_mean(name[:60], laws)}")
        return None if name is None else laws[name]

    def planned(question: PlanQuestion) -> Plan:
        if question.compute not in COMPUTE_LAWS:  # the library would read a file of that name
            raise DeepwideError(f"no compute law '{question.compute}': {did_you_mean(question.compute, COMPUTE_LAWS)}")
        settings = question.model_dump(exclude={"budget", "law"})
        return plan(question.budget, law=law_named(question.law), **settings)

    @router.get("/plan", response_model=Plan, tags=["plan"])
    def get_plan(question: Annotated[PlanQuestion, Query()]) -> Response:
        """The shape for a budget."""
        return reply(planned(question))

    @router.get("/plan/count", response_model=Count, tags=["plan"])
    def get_plan_count(question: Annotated[PlanQuestion, Query()]) -> Response:
        """Parameters, FLOPs and memory of the shape for a budget, part by part."""
        answer = planned(question)
        return reply(count(answer.shape, family=answer.family, batch=question.batch))

    @router.get("/models", tags=["plan"])
    def get_models() -> list[ModelName]:
        """The public models that can be audited by name."""
        return [ModelName(name=m.name, organisation=m.org, family=m.family) for m in all_models()]

    @router.get("/audit", response_model=Audit, tags=["plan"])
    def get_audit(
        model: Annotated[str, Query(max_length=80, description="A public model, by name.")],
        law: Annotated[str | None, Query(max_length=80)] = None,
    ) -> Response:
        """Judge a public model by a law."""
        public = find_model(model)
        return reply(audit(public.shape, name=public.name, family=public.family, law=law_named(law)))

    @router.post("/audit", response_model=Audit, tags=["plan"])
    def post_audit(
        config: Annotated[dict[str, Any], Body(description="A model's config.json.")],
        law: Annotated[str | None, Query(max_length=80)] = None,
        name: Annotated[str, Query(max_length=200)] = "config.json",
    ) -> Response:
        """Judge the model of a config.json by a law."""
        reading = read_config(config)
        answer = audit(reading.shape, name=name or "config.json", family=reading.family, law=law_named(law))
        about = {"exact": reading.exact, "notes": [*reading.notes, *answer.notes]}
        return reply(answer.model_copy(update=about))

    @router.get("/count", response_model=Count, tags=["plan"])
    def get_count(
        model: Annotated[str, Query(max_length=80, description="A public model, by name.")],
        batch: Annotated[int, Query(ge=1, le=10**9)] = 1,
        sequence: Annotated[int | None, Query(ge=1, le=10**12)] = None,
    ) -> Response:
        """Parameters, FLOPs and memory of a public model."""
        public = find_model(model)
        answer = count(public.shape, family=public.family, batch=batch, sequence=sequence)
        return reply(answer.model_copy(update={"name": public.name}))

    @router.get("/bounds", response_model=Bounds, tags=["separation"])
    def get_bounds(
        depth: Depth, width: Width, heads: Heads = 1, match: Annotated[int | None, Query(ge=1, le=64)] = None
    ) -> Response:
        """How large the separation rank must and can be."""
        from deepwide.separation import bounds

        with one_at_a_time:
            return reply(bounds(depth, width, heads, match=match))

    @router.get("/bounds/curves", response_model=BoundsCurves, tags=["separation"])
    def get_curves(depth: Depth, width: Width, heads: Heads = 1) -> Response:
        """Bounds and measured ranks against depth and against width."""
        from deepwide.separation import bounds_curves

        measured = [*contents.certificates(), *measurements.certificates()]
        with one_at_a_time:
            return reply(bounds_curves(depth, width, heads, measured))

    @router.get("/separation/count", tags=["separation"])
    def get_dimension_count(
        depth: Annotated[int, Query(ge=1, le=6)],
        width: Annotated[int, Query(ge=1, le=256)],
        heads: Annotated[int, Query(ge=1, le=256)] = 1,
    ) -> DimensionCount:
        """The dimension count, block by block: exact integers, however long."""
        from deepwide.separation import dimension_count

        return dimension_count(depth, width, heads)

    @router.get("/certificates", tags=["separation"], response_model=list[Certificate])
    def get_certificates() -> Response:
        """Ranks that were measured: certificates under the served folder, and those of this server's measurements."""
        listed = [*contents.certificates(), *measurements.certificates()]
        return Response(f"[{','.join(one.model_dump_json() for one in listed)}]", media_type="application/json")

    return router
