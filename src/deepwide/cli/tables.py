"""What the planner's verbs print: tables for people, never parsed by anything."""

from collections.abc import Iterable, Sequence
from typing import Literal

from rich import box
from rich.console import Console
from rich.table import Table

from deepwide.auditing import Verdict
from deepwide.catalogue import Model
from deepwide.laws import Interval, Law, Opinion
from deepwide.planning import Plan
from deepwide.quantities import show_bytes, show_count
from deepwide.shape import Flops, InferenceMemory, Shape, TrainingMemory

COLOURS = {"too deep": "red", "within": "green", "too shallow": "blue"}


def table(*columns: str, title: str | None = None) -> Table:
    """A plain table; a column whose name ends in < is text, in << text that may wrap, the others are numbers."""
    made = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    for name in columns:
        justify: Literal["left", "right"] = "left" if name.endswith("<") else "right"
        made.add_column(name.rstrip("<"), justify=justify, no_wrap=not name.endswith("<<"), overflow="fold")
    return made


def percent(interval: Interval) -> str:
    """+0.33% ± 0.66."""
    assert interval.low is not None
    assert interval.high is not None
    return f"{interval.value:+.2f}% ± {(interval.high - interval.low) / 2:.2f}"


def span(interval: Interval, digits: int = 1) -> str:
    """42.2 (95%: 40.4 to 44.0)."""
    text = f"{interval.value:.{digits}f}"
    if interval.low is None:
        return text
    return f"{text} (95%: {interval.low:.{digits}f} to {interval.high:.{digits}f})"


def describe(shape: Shape) -> str:
    """A shape in one line."""
    kv = "" if shape.kv_heads == shape.heads else f" ({shape.kv_heads} key/value)"
    moe = f", {shape.experts.experts} experts ({shape.experts.active} active)" if shape.experts else ""
    return (
        f"{shape.depth} layers × {shape.width:,} wide, {shape.heads} heads{kv} of {shape.head_dim}, "
        f"{shape.ff} feed-forward of {shape.ff_width:,}{moe}, vocabulary {shape.vocab:,}, context {shape.context:,}"
    )


def show_plan(plan: Plan, to: Console) -> None:
    """The plan, its neighbours, rival laws, the reason."""
    p = plan.params
    to.print(f"[bold]Plan for {plan.budget_words}[/bold]\n")
    to.print(f"  [bold green]{describe(plan.shape)}[/bold green]  ({plan.family})\n")
    facts = Table.grid(padding=(0, 2))
    fixed = plan.optimal_depth.low is None
    facts.add_row("  optimum", f"depth {span(plan.optimal_depth)}, width {span(plan.optimal_width, 0)}"
                  + ("" if not fixed else "  (no interval: fixed, or the law has no errors)"))  # fmt: skip
    facts.add_row("  parameters", f"{p.total:,} in all, {p.block:,} in blocks ({plan.miss:+.1%} of the budget)")
    words = f"{show_count(plan.train_tokens)} tokens ({plan.train_tokens_from}; causal attention counted)"
    facts.add_row("  training", f"{plan.train_flops:.3g} FLOPs for {words}")
    state, each = show_bytes(plan.training_state_bytes), show_bytes(plan.training_bytes_per_sequence)
    served, cached = show_bytes(plan.inference_bytes), show_bytes(plan.cache_bytes_per_token)
    facts.add_row("  memory", f"training {state} and {each} a sequence; inference {served}, cache {cached} a token")
    to.print(facts)
    rows = table(
        "depth",
        "width",
        "of law",
        "loss (95%)<<",
        "step time",
        "decode time",
        "<<",
        title="The same budget at other depths",
    )
    for c in plan.candidates:
        chosen = c.depth == plan.shape.depth
        rows.add_row(
            str(c.depth),
            f"{c.width:,}",
            f"{c.depth_over_law:.2f}×",
            "–" if chosen else percent(c.loss_percent),
            f"{c.step_time.value:.2f}×",
            f"{c.decode_time:.2f}×",
            "← this plan" if chosen else "extrapolated" if c.extrapolated else "",
        )
    to.print()
    to.print(rows)
    show_opinions(plan.opinions, plan.law, to)
    to.print(f"[bold]Why[/bold]  {plan.reason}\n")
    near = (
        "; ".join(f"{m.name} {m.depth} × {m.width:,} ({m.depth_over_law:.2f}×)" for m in plan.nearest)
        or "none of this size"
    )
    to.print(f"[bold]Nearest public models[/bold] (depth over the law's)  {near}")
    for note in plan.notes:
        to.print(f"[dim]Note: {note}.[/dim]")
    to.print(
        "[dim]Step time: Gemstones' cluster, at equal FLOPs. Decode time: weights read at 3.35 TB/s plus 10 µs a layer "
        "(assumed).[/dim]"
    )


def show_opinions(opinions: Sequence[Opinion], chosen: str, to: Console) -> None:
    """Every law's line."""
    rows = table("law<", "depth", "95%", "says<<", "status<<", title="What every law says of this size")
    for o in opinions:
        interval = "" if o.low is None else f"{o.low:.1f}–{o.high:.1f}"
        name = f"[bold]{o.law}[/bold]" if o.law == chosen else o.law
        rows.add_row(name, "–" if o.depth is None else f"{o.depth:.1f}", interval, o.words, o.status)
    to.print(rows)


def show_verdict(v: Verdict, to: Console) -> None:
    """One model, in full."""
    colour = COLOURS[v.verdict]
    to.print(f"[bold]{v.name}[/bold]  {describe(v.shape)}")
    to.print(f"[bold {colour}]{v.verdict}[/bold {colour}]  {v.sentence}\n")
    facts = Table.grid(padding=(0, 2))
    facts.add_row("  parameters", f"{v.params.total:,} in all, {v.params.block:,} in blocks"
                  + (f", {v.params.active:,} active" if v.params.inactive else ""))  # fmt: skip
    facts.add_row("  law's depth", span(v.law_depth))
    facts.add_row("  depth / law", span(v.depth_over_law, 2))
    facts.add_row("  loss against the law's depth", percent(v.loss_percent))
    facts.add_row("  the same budget would buy", f"{v.better_depth} × {v.better_width:,}")
    side = (
        "past it: depth and width trade as one" if v.past_threshold else "below it: depth is worth more than any width"
    )
    facts.add_row("  theory's threshold", f"log_3 width = {v.theory_threshold:.1f} layers; {side}")
    cap = "width is beyond it" if v.vocabulary_wastes_width else "no limit here"
    facts.add_row("  vocabulary cap", f"{v.shape.vocab:,}: {cap}")
    facts.add_row("  rule", v.rule)
    to.print(facts)
    to.print()
    show_opinions(v.opinions, v.law, to)
    for note in v.notes:
        to.print(f"[dim]Note: {note}.[/dim]")


def show_verdicts(verdicts: Sequence[Verdict], to: Console) -> None:
    """Several models, a line each."""
    law = verdicts[0].law
    rows = table("model<", "shape<<", "blocks", "depth / law (95%)<<", "verdict<<", "loss (95%)<<", "instead<<")
    rows.title = f"By {law}'s law"
    for v in verdicts:
        ratio = f"{v.depth_over_law.value:.2f}"
        if v.depth_over_law.low is not None:
            ratio += f" ({v.depth_over_law.low:.2f}–{v.depth_over_law.high:.2f})"
        rows.add_row(
            v.name, f"{v.shape.depth} × {v.shape.width:,}", show_count(v.params.block), ratio,
            f"[{COLOURS[v.verdict]}]{v.verdict}[/]", percent(v.loss_percent) + ("*" if v.extrapolated else ""),
            f"{v.better_depth} × {v.better_width:,}",
        )  # fmt: skip
    to.print(rows)
    if any(v.extrapolated for v in verdicts):
        to.print("[dim]* extrapolated: the cost of a wrong depth was measured up to 1.8B block parameters.[/dim]")
    to.print(f"[dim]Rule: {verdicts[0].rule}.[/dim]")
    for v in verdicts:
        for note in v.notes:
            if not note.startswith("the loss difference is extrapolated"):
                to.print(f"[dim]{v.name}: {note}.[/dim]")


def show_count_of(
    name: str,
    shape: Shape,
    cost: Flops,
    training: TrainingMemory,
    inference: InferenceMemory,
    notes: Iterable[str],
    to: Console,
) -> None:
    """Parameters, FLOPs and memory."""
    p = shape.params
    to.print(f"[bold]{name}[/bold]  {describe(shape)}\n")
    rows = table("parameters<", "count", "share")
    for part in ("embedding", "positions", "attention", "feed_forward", "norms", "head"):
        value = getattr(p, part)
        rows.add_row(part.replace("_", "-"), f"{value:,}", f"{value / p.total:.1%}")
    rows.add_section()
    rows.add_row("block (what laws count)", f"{p.block:,}", f"{p.block / p.total:.1%}")
    if p.inactive:
        rows.add_row("active per token", f"{p.active:,}", f"{p.active / p.total:.1%}")
    rows.add_row("[bold]total[/bold]", f"[bold]{p.total:,}[/bold]", "")
    to.print(rows)
    rows = table(f"FLOPs, {cost.convention} convention<", f"a sequence of {cost.sequence:,}", "a token")
    for part in (
        "projections",
        "attention",
        "feed_forward",
        "head",
        "embedding",
        "recomputed",
        "forward",
        "training",
    ):
        value = getattr(cost, part)
        if value or part in ("forward", "training"):
            rows.add_row(part.replace("_", "-"), f"{value:,}", f"{value / cost.sequence:,.0f}")
    to.print(rows)
    rows = table("memory<", "bytes", "", "formula<<")
    for title, memory in (("training", training), ("inference", inference)):
        rows.add_row(f"[bold]{title}[/bold]", f"{memory.total:,}", show_bytes(memory.total),
                     f"batch {memory.batch} × {memory.sequence:,}, {memory.precision}")  # fmt: skip
        for part, formula in memory.formula.items():
            rows.add_row(f"  {part}", f"{getattr(memory, part):,}", show_bytes(getattr(memory, part)), formula)
    to.print(rows)
    for note in notes:
        to.print(f"[dim]Note: {note}.[/dim]")


def show_models(models: Sequence[Model], to: Console) -> None:
    """The catalogue."""
    rows = table("name<", "org<", "depth", "width", "heads", "vocab", "parameters", "family<", "note<<")
    for m in models:
        s = m.shape
        heads = f"{s.heads}" if s.heads == s.kv_heads else f"{s.heads}/{s.kv_heads}"
        rows.add_row(
            m.name,
            m.org,
            str(s.depth),
            f"{s.width:,}",
            heads,
            f"{s.vocab:,}",
            f"{s.total_params:,}",
            m.family or "–",
            m.note,
        )
    to.print(rows)
    to.print(f"[dim]{len(models)} models. heads: query/key-value where they differ.[/dim]")


def show_laws(laws: Sequence[Law], to: Console) -> None:
    """The published laws."""
    rows = table("law<", "says<<", "tested on<<", "status<<", "citation<<")
    for law in laws:
        rows.add_row(f"[bold]{law.name}[/bold]", law.details or law.about, law.tested, law.status, law.citation)
    to.print(rows)
    to.print("[dim]levine is the default. A fitted law loads from its JSON file: --law mylaw.json.[/dim]")
