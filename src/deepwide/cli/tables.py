"""What the planner's verbs print: tables for people, never parsed by anything."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from deepwide.answers import Interval, Note
from deepwide.laws import Law, Opinion, without_limit
from deepwide.quantities import plural, show_bytes, show_count, show_time
from deepwide.shape import Shape

if TYPE_CHECKING:
    from deepwide.catalogue import Model
    from deepwide.laws import Worth
    from deepwide.planning import Audit, Count, Plan, Speed
    from deepwide.shape import BuiltCount, DeviceMemory

COLOURS = {"too deep": "red", "within": "green", "too shallow": "blue"}
FIRST = (
    "experts-without-data",
    "law-extrapolated",
    "law-far-length",
    "exceeds-memory",
    "other-devices",
)  # notes that stand beside the answer, not below it
NARROW = 44  # columns that the values of a list of facts need beside their labels


def table(*columns: str, title: str | None = None) -> Table:
    """A plain table; a column whose name ends in < is text, in << text that may wrap, the others are numbers."""
    rows = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    for name in columns:
        justify: Literal["left", "right"] = "left" if name.endswith("<") else "right"
        rows.add_column(name.rstrip("<"), justify=justify, no_wrap=not name.endswith("<<"), overflow="fold")
    return rows


def add(rows: Table, *cells: str | Text) -> None:
    """A row of a table; a string is shown as it is, whatever brackets are in it."""
    rows.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in cells))


def show(rows: Table, to: Console) -> None:
    """Print a table; in a terminal that is too narrow for it, one block of lines per row instead."""
    texts = [[_plain(cell) for cell in column.cells] for column in rows.columns]
    least, natural = [], []
    for column, cells in zip(rows.columns, texts, strict=True):
        whole = [*cells, _plain(column.header)]
        unbroken = whole if column.no_wrap else [word for text in whole for word in text.split()]
        column.min_width = max(map(cell_len, unbroken), default=0)
        least.append(column.min_width)
        natural.append(max(map(cell_len, whole)))
    frame = Measurement.get(to, to.options.update(width=1000), rows).minimum - sum(least)
    if sum(least) <= to.width - frame:
        # Not left to rich, which narrows columns below their longest word and cuts what is then too wide.
        for column, width in zip(rows.columns, _shared(to.width - frame, least, natural), strict=True):
            column.width = width
        to.print(rows)
        return
    if rows.title:
        to.print(f"[bold]{escape(str(rows.title))}[/bold]")
    headers = [_plain(column.header) for column in rows.columns]
    for row in zip(*texts, strict=True):
        to.print()
        to.print(Text(_heading(headers[0], row[0].strip()), style="bold"))
        show_facts([(header, cell) for header, cell in zip(headers[1:], row[1:], strict=True) if cell], to)
    to.print()


def _shared(room: int, least: Sequence[int], natural: Sequence[int]) -> list[int]:
    """Widths of columns that share a room: the widest give way first, and none below its least."""

    def widths(cap: int) -> list[int]:
        return [max(low, min(high, cap)) for low, high in zip(least, natural, strict=True)]

    caps = range(max(natural, default=0) + 1)
    cap = caps[bisect_right(caps, room, key=lambda cap: sum(widths(cap))) - 1]
    shared, wider = widths(cap), widths(cap + 1)
    for i in [i for i, width in enumerate(shared) if width < wider[i]][: room - sum(shared)]:
        shared[i] += 1
    return shared


def _heading(header: str, cell: str) -> str:
    """What begins a block of lines: a bare number says what it counts."""
    return f"{header} {cell}" if cell[:1].isdigit() else cell


def _plain(cell: object) -> str:
    return cell.plain if isinstance(cell, Text) else Text.from_markup(str(cell)).plain


def show_facts(facts: Sequence[tuple[str, str]], to: Console) -> None:
    """Labels and what they stand for, side by side, or one below the other where that would be too narrow."""
    label_width = max((len(label) for label, _ in facts), default=0)
    if to.width - label_width - 4 < min(NARROW, max((len(text) for _, text in facts), default=0)):
        for label, text in facts:
            if label:
                to.print(Text(f"  {label}"))
            to.print(_indented(text))
        return
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for label, text in facts:
        grid.add_row(Text(f"  {label}"), Text(text))
    to.print(grid)


def _indented(text: str) -> Table:
    grid = Table.grid(padding=(0, 0, 0, 4))
    grid.add_column(overflow="fold")
    grid.add_row(Text(text))
    return grid


def show_notes(notes: Iterable[Note], to: Console) -> None:
    """One sentence per note."""
    for note in notes:
        to.print(f"[dim]Note: {escape(note.text)}.[/dim]")


def show_warnings(notes: Iterable[Note], to: Console) -> list[Note]:
    """Print at once what makes the whole answer doubtful, and return the other notes, for the end."""
    notes = list(notes)
    for note in notes:
        if note.code in FIRST:
            to.print(f"[yellow]Warning: {escape(note.text)}.[/yellow]")
    return [note for note in notes if note.code not in FIRST]


def percent(interval: Interval | None) -> str:
    """+0.33% (-0.33 to +0.99): no ±, since a percentage of loss lies nearer to the lower limit of its interval."""
    if interval is None or interval.low is None or interval.high is None:
        return "no data"
    return f"{interval.value:+.2f}% ({interval.low:+.2f} to {interval.high:+.2f})"


def span(interval: Interval, digits: int = 1, of: str = "95%: ") -> str:
    """42.2 (95%: 40.4 to 44.0)."""
    text = f"{interval.value:.{digits}f}"
    if interval.low is None:
        return text
    return f"{text} ({of}{interval.low:.{digits}f} to {interval.high:.{digits}f})"


def depth_span(depth: Interval, of: str = "95%: ") -> str:
    """As `span`; an upper limit that no network has is none."""
    return f"{depth.value:.1f} ({of}{depth.low:.1f} to no upper limit)" if without_limit(depth) else span(depth, of=of)


def show_plan(plan: "Plan", to: Console) -> None:
    """The plan, its neighbours, rival laws, the reason."""
    to.print(f"[bold]Plan for {plan.asked}[/bold]\n")
    to.print(f"  [bold green]{plan.shape.describe()}[/bold green]  ({plan.family})")
    notes = show_warnings(plan.notes, to)
    to.print()
    chosen_by = {
        None: "",
        "latency": " (the limit on time chose another)",
        "budget": " (the budget suits fewer layers)",
    }
    fixed = chosen_by.get(plan.fixed, f" ({plan.fixed} is fixed)")
    # A law with loss data of its own has the error of those data, the others that of their coefficients alone.
    depth = depth_span(plan.law_depth, of="95%: " if plan.measured_depth is None else "95% from its coefficients: ")
    width = span(plan.law_width, 0, of="")
    if without_limit(plan.law_depth):
        width = f"{plan.law_width.value:.0f} (at most {plan.law_width.high:.0f})"
    facts = [("best depth", f"{depth}, width {width}: the {plan.law} law{fixed}")]
    if plan.measured_depth is not None:
        facts.append(("", f"{span(plan.measured_depth, 0)}: all public loss data"))
    facts += _parameters(plan)
    words = f"{show_count(plan.tokens)} tokens ({plan.tokens_from}; causal attention counted)"
    facts.append(("training", f"{plan.train_flops:.3g} FLOPs for {words}"))
    state, sequence = show_bytes(plan.training_state_bytes), show_bytes(plan.training_bytes_per_sequence)
    served, cached = show_bytes(plan.inference_bytes), show_bytes(plan.cache_bytes_per_token)
    again = " with activations recomputed (a third more FLOPs, not counted)" if plan.recompute else ""
    memory = f"training {state} plus {sequence} per sequence{again}; inference {served}, cache {cached} per token"
    facts.append(("memory", memory))
    share = next((c.device for c in plan.candidates if c.depth == plan.shape.depth), None)
    if plan.split is not None and share is not None:
        each = f"training {show_bytes(share.training_bytes)}, serving {show_bytes(share.serving_bytes)}"
        length = f"one sequence of {plan.shape.context:,} per micro-batch"
        facts.append(("per device", f"{each}: {plan.split.words}, {length}"))
    if plan.speed is not None:
        facts.append(("decoding", _decoding(plan.speed)))
    show_facts(facts, to)
    rows = table(
        "depth",
        "width",
        "heads",
        "expert" if plan.mixture else "ff",
        "active blocks" if plan.mixture else "blocks",
        "of law",
        "loss (95%)<<",
        "step",
        "decode",
        "<<",
        title="The same size at other depths",
    )
    for c in plan.candidates:
        chosen = c.depth == plan.shape.depth
        add(
            rows,
            str(c.depth),
            f"{c.width:,}",
            f"{c.heads} of {c.head_dim}",
            f"{c.ff_width:,}",
            show_count(c.block_params) + ("" if c.is_equal else f" ({c.size_percent:+.1f}%)"),
            f"{c.depth_over_law:.2f}×",
            "–" if chosen else percent(c.loss_percent),
            f"{c.step_time.value:.2f}×",
            f"{c.decode_time:.2f}×",
            "← this plan" if chosen else "extrapolated" if c.extrapolated else "",
        )
    to.print()
    show(rows, to)
    if plan.split is not None and any(c.device for c in plan.candidates):
        _show_shares(plan, to)
    if plan.speed is not None:
        show_frontier(plan.speed, to)
    show_opinions(plan.opinions, to)
    to.print(f"[bold]Why[/bold]  {escape(plan.reason)}\n")
    near = (
        "; ".join(f"{m.name} {m.depth} × {m.width:,} ({m.depth_over_law:.2f}×)" for m in plan.nearest)
        or "none of this size"
    )
    to.print(f"[bold]Nearest public models[/bold] (depth over the law's)  {escape(near)}")
    show_notes(notes, to)
    if plan.speed is not None:
        return
    to.print(
        "[dim]Step time: Gemstones' cluster, at equal FLOPs. Decode time: every active weight, in "
        f"{plan.decode_weights}, and the batch's cache of {plan.shape.context:,} tokens per sequence read once, "
        f"plus an overhead per layer: {escape(plan.decode_from)} (others: --machine; --bandwidth, --layer-us).[/dim]"
    )


def _show_shares(plan: "Plan", to: Console) -> None:
    """Memory of the fullest device, of every candidate."""
    heads = ("depth", "width", "weights and optimiser", "activations", "training", "cache", "serving")
    rows = table(*heads, title="Memory of the fullest device")
    for c in plan.candidates:
        if (share := c.device) is not None:
            each = (share.state_bytes, share.activation_bytes, share.training_bytes, share.cache_bytes)
            add(rows, str(c.depth), f"{c.width:,}", *map(show_bytes, (*each, share.serving_bytes)))
    show(rows, to)


def _parameters(plan: "Plan") -> list[tuple[str, str]]:
    """The counts; with experts, also what of them is active and what the experts are."""
    p, budget, mixture = plan.params, f"(budget {plan.miss:+.1%})", plan.mixture
    if mixture is None:
        return [("parameters", f"{p.total:,} total, {p.block:,} in blocks {budget}")]
    size = f"{p.total:,} total, {p.active:,} active; in blocks {p.block:,}, {p.active_block:,} active {budget}"
    shared = f", {mixture.shared_params:,} shared" if mixture.shared else ""
    routed = f"{mixture.expert_params:,} per expert; {mixture.routed_params:,} routed{shared}"
    about = f"{mixture.sparsity:g} experts per active one, granularity {mixture.granularity:.3g}"
    return [("parameters", size), ("experts", f"{routed}, {mixture.router_params:,} in routers; {about}")]


def _decoding(speed: "Speed") -> str:
    limit = "" if speed.limit_seconds is None else f" (limit {show_time(speed.limit_seconds)})"
    return f"{_time(speed.decode_seconds)} per token{limit}, {speed.tokens_per_second:,.0f} tokens/s on {speed.machine}"


def _time(interval: Interval) -> str:
    limits = "" if interval.low is None else f" ({show_time(interval.low)} to {show_time(interval.high or 0.0)})"
    return show_time(interval.value) + limits


def show_frontier(speed: "Speed", to: Console) -> None:
    """Loss against decode time: the shapes that nothing beats in both."""
    title = "Loss against decode time, within the budget"
    losses = ("loss (95% of its depth)<<",) if speed.own_data else ("loss, law", "loss, data (95%)<<")
    rows = table("depth", "width", "heads", "blocks", *losses, "decode", "tokens/s", "<<", title=title)
    for row in speed.frontier:
        by_law = f"{row.loss_percent.value:+.2f}%"
        by_data = (
            percent(row.data_percent) if row.data_percent is None or row.data_percent.low is not None else "+0.00%"
        )
        add(
            rows,
            str(row.depth),
            f"{row.width:,}",
            f"{row.heads} of {row.head_dim}",
            show_count(row.block_params),
            *((by_data,) if speed.own_data else (by_law, by_data)),
            show_time(row.decode_seconds.value),
            f"{row.tokens_per_second:,.0f}",
            "← this plan" if row.chosen else "",
        )
    show(rows, to)


def show_opinions(opinions: Sequence[Opinion], to: Console) -> None:
    """Every law's line, the chosen one first."""
    rows = table("law<", "depth", "95%", "says<<", "status<<", title="What every law says about this size")
    for i, o in enumerate(opinions):
        interval = "" if o.low is None else f"{o.low:.1f}–{o.high:.1f}"
        if o.depth is not None and without_limit(Interval(o.depth, o.low, o.high)):
            interval = f"{o.low:.1f} or more"
        depth = "–" if o.depth is None else f"{o.depth:.1f}"
        add(rows, Text(o.law, style="" if i else "bold"), depth, interval, o.words, o.status)
    show(rows, to)


def show_audit(audit: "Audit", to: Console) -> None:
    """One model, in full."""
    colour = COLOURS[audit.verdict.outcome]
    to.print(f"[bold]{escape(audit.name)}[/bold]  {audit.shape.describe()}")
    to.print(f"[bold {colour}]{audit.words}[/bold {colour}]  {escape(audit.sentence)}")
    notes = show_warnings(audit.notes, to)
    to.print()
    about = "" if audit.exact else "≈ "
    p, instead = audit.params, audit.instead
    size = f"{about}{p.total:,} total, {about}{p.block:,} in blocks"
    if p.inactive:
        size = f"{about}{p.total:,} total, {about}{p.active:,} active; in blocks {p.block:,}, {p.active_block:,} active"
    here = "past it, depth and width trade evenly"
    if not audit.past_threshold:
        here = "below it, depth is worth more than any width"
    capped = "width is beyond it" if audit.vocabulary_wastes_width else "no limit here"
    if not audit.exact:
        show_notes(notes, to)
    show_facts(
        [
            ("parameters", size),
            ("law's depth", depth_span(audit.law_depth)),
            ("depth / law", span(audit.depth_over_law, 2)),
            *([("by total parameters", span(measured, 2))] if (measured := _by_total(audit)) else []),
            ("loss against the law's depth", percent(audit.loss_percent)),
            *_worth(audit),
            ("the same size at the law's depth", describe_briefly(instead) if instead else "not planned for this kind"),
            ("theory's threshold", f"log_3 width = {audit.theory_threshold:.1f} layers: {here} (Levine et al. 2020)"),
            ("vocabulary cap", f"{audit.shape.vocab:,}: {capped}"),
            ("rule", audit.verdict.rule),
        ],
        to,
    )
    to.print()
    show_opinions(audit.opinions, to)
    if audit.exact:
        show_notes(notes, to)


def _worth(audit: "Audit") -> list[tuple[str, str]]:
    """What would make the loss up."""
    worth = audit.worth
    if worth is None:
        return []
    params = "active parameters" if audit.params.inactive else "parameters"
    parts = ((params, worth.params_percent), ("tokens", worth.tokens_percent), ("FLOPs", worth.flops_percent))
    each = ", or ".join(_more(interval, name) for name, interval in parts)
    surface = f"{worth.surface} surface, {show_count(worth.tokens)} tokens; below 0: saved"
    facts = [("made up by", f"{each} with both grown alike ({surface})")]
    if worth.money is not None and worth.training_money is not None and audit.price is not None:
        hours = worth.training_flops / audit.gpu_flops / 3600
        per_token = f"{show_count(worth.training_flops / worth.tokens)} per token"
        spent = (
            f"{worth.training_flops:.3g} FLOPs ({per_token} × {show_count(worth.tokens)} tokens; causal attention over "
            f"{audit.shape.context:,} counted)"
        )
        rate = f"{audit.gpu_flops:.3g} per second and GPU as used (peak × utilisation)"
        slower = f"{audit.step_time.value:.2f} times as long as at the law's depth at equal FLOPs (Gemstones' cluster)"
        facts += [
            (
                "in money",
                f"{_money(worth)} with both grown alike, beside {worth.training_money:,.0f} for the training itself",
            ),
            ("", f"{spent} / {rate} = {hours:,.0f} GPU-hours at {audit.price:g}; the extra FLOPs likewise"),
            ("", f"not in it: steps take {slower}"),
            ("cheapest repair", _repair(worth, params)),
        ]
    return facts


def _repair(worth: "Worth", params: str) -> str:
    """The cheapest repair and the others, as in: +20.9% parameters for +1,344,290; dearer: +10.0% of both for …"""
    nouns = {"parameters": params, "tokens": "tokens", "both": "of both"}
    repairs = [
        f"{more:+.1f}% {nouns[name]} for {cost / 100 * (worth.training_money or 0):+,.0f}"
        for name, (more, cost) in worth.repairs.items()
    ]
    if not repairs:
        needed = worth.flops_percent.value > 0
        return "none: no amount of either is enough" if needed else "none needed by the middle estimate"
    others = " and ".join(repairs[1:])
    return repairs[0] + (f"; dearer: {others}" if others else "; nothing else is enough")


def _money(worth: "Worth") -> str:
    assert worth.money is not None
    assert worth.training_money is not None
    most = 100 * worth.training_money

    def shown(money: float) -> str:
        return "no amount" if math.isinf(money) else f"over {most:,.0f}" if money >= most else f"{money:+,.0f}"

    value, low, high = worth.money.value, worth.money.low, worth.money.high
    return shown(value) + ("" if low is None or high is None else f" ({shown(low)} to {shown(high)})")


def _more(interval: Interval, noun: str) -> str:
    """+3% (-7 to +15) tokens; no amount of tokens (from +820%)."""

    def shown(percent: float, unit: str = "") -> str:
        if math.isinf(percent):
            return "no amount"
        return "over 100×" if percent > 9900 else f"{percent:+.0f}{unit}"

    value, low, high = interval.value, interval.low, interval.high
    if math.isinf(value):
        return f"no amount of {noun}" + ("" if low is None or math.isinf(low) else f" (from {shown(low, '%')})")
    limits = "" if low is None or high is None else f" ({shown(low)} to {shown(high)})"
    return f"{shown(value, '%')}{limits} {noun}"


def _by_total(audit: "Audit") -> Interval | None:
    return audit.verdict_total.measured if audit.verdict_total else None


def describe_briefly(shape: Shape) -> str:
    """55 × 3,072, 24 heads (8 key/value) of 128, feed-forward of 11,008."""
    kv = "" if shape.kv_heads == shape.heads else f" ({shape.kv_heads} key/value)"
    heads = f"{plural(shape.heads, 'head')}{kv} of {shape.head_dim}"
    return f"{shape.depth} × {shape.width:,}, {heads}, feed-forward of {shape.ff_width:,}"


def show_audits(audits: Sequence["Audit"], failures: Sequence[tuple[str, str]], to: Console) -> None:
    """Several models, one row each; what could not be read has its reason as its row."""
    from deepwide.planning import RULE_OF_COST

    priced = any(a.worth is not None and a.worth.money is not None for a in audits)
    money = ("in money (95%)<<",) if priced else ()
    rows = table(
        "model<<", "shape<<", "blocks", "depth / law (95%)<<", "verdict<<", "loss (95%)<<", *money, "instead<<"
    )
    if audits:
        rows.title = Text(f"According to the {audits[0].law} law")
    for a in audits:
        instead = f"{a.instead.depth} × {a.instead.width:,}" if a.instead else "–"
        extrapolated = any(note.code == "cost-extrapolated" for note in a.notes)
        size = ("" if a.exact else "≈ ") + show_count(a.params.active_block) + (" active" if a.params.inactive else "")
        ratio = _ratio(a.depth_over_law) + (f"; {_ratio(whole)} by total" if (whole := _by_total(a)) else "")
        worth = ([_money(a.worth) if a.worth and a.worth.money else "no data"]) if priced else []
        verdict = Text(a.words, style=COLOURS[a.verdict.outcome])
        loss = percent(a.loss_percent) + ("*" if extrapolated else "")
        add(rows, a.name, f"{a.shape.depth} × {a.shape.width:,}", size, ratio, verdict, loss, *worth, instead)
    if audits:
        show(rows, to)
    for name, reason in failures:
        to.print(f"{escape(name)}: [red]not read[/red]: {escape(reason)}")
    if not audits:
        return
    shown = {_shared_text(note): note for a in audits for note in a.notes}
    beyond = next((note for note in shown.values() if note.code == "cost-extrapolated"), None)
    if beyond is not None:
        to.print(f"[dim]* {escape(beyond.text)}.[/dim]")
    to.print(f"[dim]Rule: {escape(audits[0].verdict.rule)}; {escape(RULE_OF_COST)}.[/dim]")
    if priced:
        trained = ", ".join(
            f"{a.name} {show_count(a.worth.tokens)} tokens for {a.worth.training_money:,.0f}"
            for a in audits
            if a.worth is not None and a.worth.training_money is not None
        )
        to.print(
            f"[dim]Money: the FLOPs that make the loss up, parameters and tokens grown alike (below 0: saved), at "
            f"{audits[0].price:g} per GPU-hour of {audits[0].gpu_flops:.3g} FLOPs per second. Trained on: "
            f"{escape(trained)} (20 tokens per parameter unless --tokens says).[/dim]"
        )
    for text, note in shown.items():
        if note.code == "cost-extrapolated":
            continue
        names = ", ".join(a.name for a in audits if any(_shared_text(other) == text for other in a.notes))
        to.print(f"[dim]{escape(names)}: {escape(text)}.[/dim]")


def _shared_text(note: Note) -> str:
    """A note's text without what differs from model to model, so that models share a line."""
    if note.code != "law-extrapolated":
        return note.text
    sizes = " to ".join(show_count(note.data[name]) for name in ("smallest", "largest"))
    return f"the {note.data['law']} law is extrapolated: fitted on {sizes} block parameters"


def _ratio(interval: Interval) -> str:
    if interval.low is None:
        return f"{interval.value:.2f}"
    return f"{interval.value:.2f} ({interval.low:.2f}–{interval.high:.2f})"


def show_count_of(counted: "Count", to: Console) -> None:
    """Parameters, FLOPs and memory."""
    p, cost, about = counted.params, counted.flops, "" if counted.exact else "≈ "
    to.print(f"[bold]{escape(counted.name)}[/bold]  {counted.shape.describe()}\n")
    if not counted.exact:
        show_notes(counted.notes, to)
    rows = table("parameters<", "count", "share")
    for part in ("embedding", "positions", "attention", "mixers", "feed_forward", "norms", "head"):
        value = getattr(p, part)
        if part == "mixers" and not value:
            continue
        add(rows, part.replace("_", "-"), f"{about}{value:,}", f"{value / p.total:.1%}")
    rows.add_section()
    add(rows, "block (what laws count)", f"{about}{p.block:,}", f"{p.block / p.total:.1%}")
    if p.inactive:
        add(rows, "active per token", f"{about}{p.active:,}", f"{p.active / p.total:.1%}")
    add(rows, Text("total", style="bold"), Text(f"{about}{p.total:,}", style="bold"), "")
    show(rows, to)
    rows = table(f"FLOPs, {cost.convention} convention<", f"sequence of {cost.sequence:,}", "per token")
    for part in (
        "projections",
        "attention",
        "mixers",
        "feed_forward",
        "head",
        "embedding",
        "recomputed",
        "forward",
        "training",
    ):
        value = getattr(cost, part)
        if value or part in ("forward", "training"):
            add(rows, part.replace("_", "-"), f"{about}{value:,}", f"{about}{value / cost.sequence:,.0f}")
    show(rows, to)
    rows = table("memory<", "bytes", "", "formula<<")
    for title, memory in (("training", counted.training_memory), ("inference", counted.inference_memory)):
        settings = f"batch {memory.batch} × {memory.sequence:,}, {memory.precision}"
        add(rows, Text(title, style="bold"), f"{about}{memory.total:,}", show_bytes(memory.total), settings)
        for part, formula in memory.formula.items():
            value = getattr(memory, part)
            add(rows, f"  {title} {part}", f"{about}{value:,}", show_bytes(value), formula)
    show(rows, to)
    if counted.device is not None:
        _show_device(counted.device, to)
    if counted.exact:
        show_notes(counted.notes, to)


def show_built(built: "BuiltCount", to: Console) -> None:
    """Parameters as transformers builds them."""
    to.print(f"[bold]{escape(built.name)}[/bold]  {escape(built.architecture)}\n")
    rows = table("parameters<", "count", "share")
    for row in built.rows()[:-1]:
        if row["parameters"] or row["part"] != "experts":
            add(rows, row["part"], f"{row['parameters']:,}", f"{row['parameters'] / built.total:.1%}")
    rows.add_section()
    add(rows, Text("total", style="bold"), Text(f"{built.total:,}", style="bold"), "")
    show(rows, to)
    show_notes(built.notes, to)


def _show_device(device: "DeviceMemory", to: Console) -> None:
    """The fullest device of a model that is split."""
    split = f"tensor {device.tensor_parallel} × pipeline {device.pipeline_stages} × data {device.data_parallel}"
    if device.expert_parallel > 1:
        split += f", experts over {device.expert_parallel}"
    to.print(f"[bold]The fullest device[/bold] (stage {device.stage + 1}): {split}, ZeRO {device.zero}")
    rows = table("memory<", "bytes", "")
    for name in ("weights", "gradients", "optimiser", "activations", "logits"):
        add(rows, name, f"{getattr(device, name):,}", show_bytes(getattr(device, name)))
    add(rows, Text("training", style="bold"), f"{device.training:,}", show_bytes(device.training))
    add(rows, "weights in bf16", f"{device.inference_weights:,}", show_bytes(device.inference_weights))
    add(rows, "cache", f"{device.cache:,}", show_bytes(device.cache))
    add(rows, Text("inference", style="bold"), f"{device.inference:,}", show_bytes(device.inference))
    show(rows, to)


def show_models(models: Sequence["Model"], to: Console) -> None:
    """The catalogue."""
    rows = table("name<", "org<", "depth", "width", "heads", "vocab", "parameters", "family<")
    for m in models:
        s = m.shape
        heads = f"{s.heads}" if s.heads == s.kv_heads else f"{s.heads}/{s.kv_heads}"
        add(
            rows,
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
            to.print(f"[dim]* {escape(m.name)}: {escape(m.note)}.[/dim]")


def show_laws(laws: Sequence[Law], to: Console) -> None:
    """The published laws."""
    rows = table("law<", "says<<", "tested on<<", "status<<", "citation<<")
    for law in laws:
        add(rows, Text(law.name, style="bold"), law.details or law.about, law.tested, law.status, law.citation)
    show(rows, to)
    to.print("[dim]levine is the default. A fitted law loads from its JSON file: --law mylaw.json.[/dim]")
