"""The reports of a plan and of audits."""

from collections.abc import Callable, Sequence
from typing import Any

from deepwide import figures
from deepwide.answers import Interval, Note
from deepwide.planning import RULE_OF_COST, Audit, Plan
from deepwide.quantities import plural, show_bytes, show_count, show_time
from deepwide.report.document import Attachment, Block, Facts, Notes, Report, Section, Table, Text, draw

# Notes that make the whole answer doubtful.
FIRST = ("experts-without-data", "law-extrapolated", "law-far-length", "exceeds-memory", "other-devices")


def plan_report(plan: Plan) -> Report:
    """The shape, its neighbours in depth on the law's map, what other laws say, why."""
    shape, params = plan.shape, plan.params
    memory = (
        f"training {show_bytes(plan.training_state_bytes)} plus {show_bytes(plan.training_bytes_per_sequence)} per "
        f"sequence; inference {show_bytes(plan.inference_bytes)}, cache {show_bytes(plan.cache_bytes_per_token)} per "
        "token"
    )
    active = "" if shape.experts is None else f"{params.active:,} active; of these "
    facts = [
        ("shape", f"{shape.describe()} ({plan.family})"),
        ("best depth", f"{span(plan.law_depth)}, width {span(plan.law_width, 0)}: the {plan.law} law"),
        *(
            [("best depth by loss", f"{span(plan.measured_depth, 0)}: all public loss data")]
            if plan.measured_depth
            else []
        ),
        *([("fixed", plan.fixed)] if plan.fixed in ("depth", "width") else []),
        *([("decoding", _decoding(plan))] if plan.speed else []),
        ("parameters", f"{params.total:,} total, {active}{params.active_block:,} in blocks (budget {plan.miss:+.1%})"),
        ("training", f"{plan.train_flops:.3g} FLOPs for {show_count(plan.tokens)} tokens ({plan.tokens_from})"),
        ("memory", memory),
    ]
    columns = {
        "depth": "depth", "width": "width", "block_params": "block parameters", "depth_over_law": "depth / law",
        "loss_percent": "loss %", "loss_percent_low": "from", "loss_percent_high": "to", "step_time": "step time",
        "decode_time": "decode time", "extrapolated": "extrapolated", "recommended": "this plan",
    }  # fmt: skip
    near = [vars(model) for model in plan.nearest]
    public = {"name": "model"} | {key: columns[key] for key in ("depth", "width", "block_params", "depth_over_law")}
    times = (
        "Loss, step time and decode time are relative to this plan; the limits of the loss are 95%. Step time: "
        "Gemstones' cluster, at equal FLOPs. Decode time: every active weight read once, plus an overhead per layer: "
        "assumed, not measured."
    )
    sections = (
        Section("The shape", (*warnings(plan.notes), Facts(tuple(facts)), Text(plan.reason), *notes(plan.notes))),
        Section(
            "The same size at other depths",
            (
                Table.of("depths", plan.rows(), times, columns),
                _map(lambda: figures.plan_map(plan, plan.law)),
            ),
        ),
        _opinions(plan),
        Section("Public models of this size", (Table.of("models", near, "", public),)),
        _data(plan.model_dump_json(indent=1), "plan.json"),
    )
    lead = f"{shape.depth} layers × {shape.width:,} wide, {params.total:,} parameters."
    return Report("plan", f"Plan for {plan.asked}", lead, sections)


def _decoding(plan: Plan) -> str:
    assert plan.speed is not None
    limit = f" (asked: {plan.speed.limit_words})" if plan.speed.limit_words else ""
    return f"{show_time(plan.speed.decode_seconds.value)} per token on {plan.speed.machine}{limit}"


def audit_report(audits: Sequence[Audit], failures: Sequence[tuple[str, str]] = ()) -> Report:
    """The verdict on each model, the map, and each model in full; a model that could not be read is a row."""
    rows = [row for audit in audits for row in audit.rows()]
    unread = [{"name": name, "outcome": "not read", "error": reason} for name, reason in failures]
    columns = {
        "name": "model", "depth": "depth", "width": "width", "block_params": "(active) block parameters",
        "depth_over_law": "depth / law", "depth_over_law_low": "from", "depth_over_law_high": "to",
        "outcome": "verdict", "cost": "cost", "loss_percent": "loss %", "loss_percent_low": "from",
        "loss_percent_high": "to", "instead_depth": "depth instead", "instead_width": "width instead",
        "error": "error",
    }  # fmt: skip
    rule = f"Rule: {audits[0].verdict.rule}; {RULE_OF_COST}." if audits else ""
    blocks: list[Block] = [Table.of("audits", [*rows, *unread], f"From, to: 95%. {rule}", columns)]
    if audits:
        blocks.append(_map(lambda: figures.audit_map(audits, audits[0].law)))
    sections = [Section("Verdicts", tuple(blocks))]
    for audit in audits:
        params = audit.params
        active = f", {params.active_block:,} of these active" if params.inactive else ""
        facts = (
            ("shape", audit.shape.describe()),
            ("parameters", f"{params.total:,} total, {params.block:,} in blocks{active}"),
            ("law's depth", f"{span(audit.law_depth)} ({audit.law}: {audit.law_status})"),
            ("the same size at the law's depth", audit.instead.describe() if audit.instead else "not planned"),
            ("theory's threshold", f"log_3 width = {audit.theory_threshold:.1f} layers (Levine et al. 2020)"),
        )
        words: tuple[Block, ...] = (
            *warnings(audit.notes),
            Text(audit.sentence, strong=True),
            Facts(facts),
            *notes(audit.notes),
        )
        sections.append(Section(f"{audit.name}: {audit.words}", words))
    if len(audits) == 1:
        sections.append(_opinions(audits[0]))
    documents = [audit.model_dump_json(indent=1) for audit in audits]
    sections.append(_data(f"[{','.join(documents)}]", "audit.json"))
    lead = f"{plural(len(audits), 'model')} judged by the {audits[0].law} law." if audits else "No model could be read."
    if audits and unread:
        lead += f" {plural(len(unread), 'other')} could not be read: see the error in the table."
    title = f"Audit of {audits[0].name}" if len(audits) == 1 else f"Audit of {plural(len(audits), 'model')}"
    return Report("audit", title, lead, tuple(sections))


def span(interval: Interval, digits: int = 1) -> str:
    """42.2 (95%: 40.4 to 44.0)."""
    text = f"{interval.value:.{digits}f}"
    if interval.low is None or interval.high is None:
        return text
    return f"{text} (95%: {interval.low:.{digits}f} to {interval.high:.{digits}f})"


def warnings(given: Sequence[Note]) -> tuple[Notes, ...]:
    """What makes the whole answer doubtful, if anything does."""
    texts = tuple(note.text for note in given if note.code in FIRST)
    return (Notes(texts, warning=True),) if texts else ()


def notes(given: Sequence[Note]) -> tuple[Notes, ...]:
    """The other notes."""
    texts = tuple(note.text for note in given if note.code not in FIRST)
    return (Notes(texts),) if texts else ()


def _opinions(answer: Plan | Audit) -> Section:
    rows = [vars(opinion) for opinion in answer.opinions]
    titles = {"law": "law", "depth": "depth", "low": "from", "high": "to", "words": "says", "status": "status"}
    return Section("What every law says about this size", (Table.of("laws", rows, "From, to: 95%.", titles),))


def _data(document: str, name: str) -> Section:
    return Section("Data", (Attachment(name, document.encode(), "application/json"),))


def _map(chart: Callable[[], Any]) -> Block:
    return draw("map", chart, "Depth against width: the law with its bands, other laws dashed, shapes as points")
