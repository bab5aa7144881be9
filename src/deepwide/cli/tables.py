"""What the planner's verbs print: tables for people, never parsed by anything."""

from collections.abc import Iterable, Sequence
from typing import Literal

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from deepwide.answers import Interval
from deepwide.auditing import Verdict
from deepwide.catalogue import Model
from deepwide.laws import Law, Opinion
from deepwide.planning import Plan
from deepwide.quantities import plural, show_bytes, show_count
from deepwide.shape import Flops, InferenceMemory, Shape, TrainingMemory

COLOURS = {"too deep": "red", "within": "green", "too shallow": "blue"}


def table(*columns: str, title: str | None = None) -> Table:
    """A plain table; a column whose name ends in < is text, in << text that may wrap, the others are numbers."""
    made = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    for name in columns:
        justify: Literal["left", "right"] = "left" if name.endswith("<") else "right"
        made.add_column(name.rstrip("<"), justify=justify, no_wrap=not name.endswith("<<"), overflow="fold")
    return made


def show(rows: Table, to: Console) -> None:
    """Print a table, wider than the terminal rather than with digits cut off."""
    for column in rows.columns:
        cells = [Text.from_markup(str(cell)).plain for cell in (column.header, *column.cells)]
        unbroken = cells if column.no_wrap else [word for cell in cells for word in cell.split()]
        column.min_width = max(map(len, unbroken), default=0)
    needed = Measurement.get(to, to.options.update(width=1000), rows).minimum + 2
    if needed > to.width:
        to = type(to)(highlight=False, file=to.file, width=needed)
    to.print(rows)


def percent(interval: Interval | None) -> str:
    """+0.33% ± 0.66."""
    if interval is None or interval.low is None or interval.high is None:
        return "no data"
    return f"{interval.value:+.2f}% ± {(interval.high - interval.low) / 2:.2f}"


def span(interval: Interval, digits: int = 1, own: str = "95%") -> str:
    """42.2 (95%: 40.4 to 44.0)."""
    text = f"{interval.value:.{digits}f}"
    if interval.low is None:
        return text
    return f"{text} ({own}: {interval.low:.{digits}f} to {interval.high:.{digits}f})"


def describe(shape: Shape) -> str:
    """A shape in one line."""
    kv = "" if shape.kv_heads == shape.heads else f" ({shape.kv_heads} key/value)"
    moe = f", {shape.experts.experts} experts ({shape.experts.active} active)" if shape.experts else ""
    heads = f"{plural(shape.heads, 'head')}{kv} of {shape.head_dim}"
    return (
        f"{plural(shape.depth, 'layer')} × {shape.width:,} wide, {heads}, "
        f"{shape.ff} feed-forward of {shape.ff_width:,}{moe}, vocabulary {shape.vocab:,}, context {shape.context:,}"
    )


def show_plan(plan: Plan, to: Console) -> None:
    """The plan, its neighbours, rival laws, the reason."""
    p = plan.params
    to.print(f"[bold]Plan for {plan.budget_words}[/bold]\n")
    to.print(f"  [bold green]{describe(plan.shape)}[/bold green]  ({plan.family})\n")
    facts = Table.grid(padding=(0, 2))
    own = f"the {plan.law} law's" if plan.fixed is None else f"the {plan.law} law's ({plan.fixed} is fixed)"
    facts.add_row(
        "  best depth", f"{span(plan.law_depth, own='its own error')}, width {span(plan.law_width, 0)}: {own}"
    )
    if plan.measured_depth is not None:
        facts.add_row("", f"{span(plan.measured_depth, 0)}: where Gemstones' losses put it")
    facts.add_row("  parameters", f"{p.total:,} in all, {p.block:,} in blocks ({plan.miss:+.1%} of the budget)")
    words = f"{show_count(plan.tokens)} tokens ({plan.tokens_from}; causal attention counted)"
    facts.add_row("  training", f"{plan.train_flops:.3g} FLOPs for {words}")
    state, each = show_bytes(plan.training_state_bytes), show_bytes(plan.training_bytes_per_sequence)
    served, cached = show_bytes(plan.inference_bytes), show_bytes(plan.cache_bytes_per_token)
    facts.add_row("  memory", f"training {state} and {each} a sequence; inference {served}, cache {cached} a token")
    to.print(facts)
    rows = table(
        "depth",
        "width",
        "blocks",
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
            show_count(c.block_params),
            f"{c.depth_over_law:.2f}×",
            "–" if chosen else percent(c.loss_percent),
            f"{c.step_time.value:.2f}×",
            f"{c.decode_time:.2f}×",
            "← this plan" if chosen else "extrapolated" if c.extrapolated else "",
        )
    to.print()
    show(rows, to)
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
        "[dim]Step time: Gemstones' cluster, at equal FLOPs. Decode time: every weight read once, plus an overhead per "
        "layer (see --bandwidth, --layer-us): assumed, not measured.[/dim]"
    )


def show_opinions(opinions: Sequence[Opinion], chosen: str, to: Console) -> None:
    """Every law's line."""
    rows = table("law<", "depth", "95%", "says<<", "status<<", title="What every law says of this size")
    for o in opinions:
        interval = "" if o.low is None else f"{o.low:.1f}–{o.high:.1f}"
        name = f"[bold]{o.law}[/bold]" if o.law == chosen else o.law
        rows.add_row(name, "–" if o.depth is None else f"{o.depth:.1f}", interval, o.words, o.status)
    show(rows, to)


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
    facts.add_row("  the same budget would buy", f"{v.instead_depth} × {v.instead_width:,}")
    here = (
        "past it, depth and width trade evenly" if v.past_threshold else "below it, depth is worth more than any width"
    )
    facts.add_row("  theory's threshold", f"log_3 width = {v.theory_threshold:.1f} layers: {here} (Levine et al. 2020)")
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
    rows.title = f"By the {law} law"
    for v in verdicts:
        ratio = f"{v.depth_over_law.value:.2f}"
        if v.depth_over_law.low is not None:
            ratio += f" ({v.depth_over_law.low:.2f}–{v.depth_over_law.high:.2f})"
        rows.add_row(
            v.name, f"{v.shape.depth} × {v.shape.width:,}", show_count(v.params.block), ratio,
            f"[{COLOURS[v.verdict]}]{v.verdict}[/]", percent(v.loss_percent) + ("*" if v.extrapolated else ""),
            f"{v.instead_depth} × {v.instead_width:,}",
        )  # fmt: skip
    show(rows, to)
    if any(v.extrapolated for v in verdicts):
        reach = next((v.extrapolated for v in verdicts if v.extrapolated), "")
        to.print(f"[dim]* extrapolated: the cost of a wrong depth was {reach}.[/dim]")
    to.print(f"[dim]Rule: {verdicts[0].rule}.[/dim]")
    notes = dict.fromkeys(note for v in verdicts for note in v.notes if not note.startswith("the loss difference is"))
    for note in notes:
        names = ", ".join(v.name for v in verdicts if note in v.notes)
        to.print(f"[dim]{names}: {note}.[/dim]")


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
    show(rows, to)
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
    show(rows, to)
    rows = table("memory<", "bytes", "", "formula<<")
    for title, memory in (("training", training), ("inference", inference)):
        rows.add_row(f"[bold]{title}[/bold]", f"{memory.total:,}", show_bytes(memory.total),
                     f"batch {memory.batch} × {memory.sequence:,}, {memory.precision}")  # fmt: skip
        for part, formula in memory.formula.items():
            rows.add_row(f"  {part}", f"{getattr(memory, part):,}", show_bytes(getattr(memory, part)), formula)
    show(rows, to)
    for note in notes:
        to.print(f"[dim]Note: {note}.[/dim]")


def show_models(models: Sequence[Model], to: Console) -> None:
    """The catalogue."""
    rows = table("name<", "org<", "depth", "width", "heads", "vocab", "parameters", "family<")
    for m in models:
        s = m.shape
        heads = f"{s.heads}" if s.heads == s.kv_heads else f"{s.heads}/{s.kv_heads}"
        rows.add_row(
            m.name + ("*" if m.note else ""),
            m.org,
            str(s.depth),
            f"{s.width:,}",
            heads,
            f"{s.vocab:,}",
            f"{s.total_params:,}",
            m.family or "–",
        )
    show(rows, to)
    to.print(f"[dim]{plural(len(models), 'model')}. heads: query/key-value where they differ.[/dim]")
    for m in models:
        if m.note:
            to.print(f"[dim]* {m.name}: {m.note}.[/dim]")


def show_laws(laws: Sequence[Law], to: Console) -> None:
    """The published laws."""
    rows = table("law<", "says<<", "tested on<<", "status<<", "citation<<")
    for law in laws:
        rows.add_row(f"[bold]{law.name}[/bold]", law.details or law.about, law.tested, law.status, law.citation)
    show(rows, to)
    to.print("[dim]levine is the default. A fitted law loads from its JSON file: --law mylaw.json.[/dim]")
