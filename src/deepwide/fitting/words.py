"""The sentence of every note, by its code: what was done to the data, and what a careful reader of a fit must know.

Code decides by codes and numbers; words are made here and nowhere else. No sentence names a command-line option.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from deepwide.answers import Interval, Note
from deepwide.laws import without_limit
from deepwide.quantities import plural, show_count


def note(code: str, **data: Any) -> Note:
    """The note of that code with its numbers.

    >>> str(note("crossing-outside", shallow=2, deep=4))
    'the crossing of 2 and 4 layers lies outside the sizes trained'
    """
    return Note(code, _TEXTS[code](**data), data)


NEARLY_ONE = 1.1  # a factor of size
WIDE = 10.0  # a factor of size that should show growth
_SO_LARGE = "; so large a misfit may be a mistake in the table, or settings that differ between runs"


def _inflation(value: float) -> str:
    return f"variance inflation {value:.0f}" if value < float("inf") else "exactly"


def joined(words: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def show_size(size: float | None) -> str:
    """48.2K, or that there is no limit."""
    return "no limit" if size is None or size > 1e15 else show_count(round(size))


def show_interval(interval: Interval, digits: int = 3) -> str:
    """3.2 (2.9 to 3.5), without the brackets where there is no interval."""
    text = f"{interval.value:.{digits}g}"
    return text if interval.low is None else f"{text} ({interval.low:.{digits}g} to {interval.high:.{digits}g})"


def show_depth(interval: Interval) -> str:
    """As `show_interval`; an upper limit that no network could have is none."""
    if without_limit(interval):
        return f"{interval.value:.3g} ({interval.low:.3g} to no upper limit)"
    return show_interval(interval)


def noise_by_depth(noises: Mapping[int, float]) -> str:
    """The noise of each depth."""
    shares = ", ".join(f"{100 * noise:.2g}" for noise in noises.values())
    return f"{shares}% of loss at {joined([str(depth) for depth in noises])} layers"


def group_name(depth: float, size: float) -> str:
    """All seeds of one shape, as a sentence names them."""
    return f"depth {depth:g} at {show_count(round(size))}"


def _diverged(count: int, size: float | None, best: float | None, low: float | None, high: float | None) -> str:
    runs = "the run that diverged" if count == 1 else f"the {count} runs that diverged"
    moved = "these runs would show no best depth"
    if size is not None and best is not None:
        shown = show_interval(Interval(best, low, high))
        moved = f"the best depth at {show_size(size)} would be {shown}, outside its interval"
    return (
        f"without {runs} {moved}: a diverged run counts as worse than all runs near its size, so leave out those that "
        "diverged for another reason than their depth, such as the learning rate"
    )


def _shape_apart(
    what: str, depth: float, size: float, at: float, best: float | None, low: float | None, high: float | None
) -> str:
    moved = "the others show no best depth"
    if best is not None:
        moved = f"the best depth at {show_size(at)} is {show_interval(Interval(best, low, high))}"
    return (
        f"{group_name(depth, size)} lies far from all other shapes in {what}, and without it {moved}: check that it is "
        "no typing error"
    )


def _stands_out(
    depth: float, size: float, loss: float, expected: float, errors: float, at: float, best: float | None,
    low: float | None, high: float | None,
) -> str:  # fmt: skip
    with_all = "there would be no best depth"
    if best is not None:
        with_all = f"the best depth at {show_size(at)} would be {show_interval(Interval(best, low, high))}"
    return (
        f"{group_name(depth, size)} has loss {loss:.4g}, where the others expect {expected:.4g} "
        f"({_factor(errors)} times the noise off): left out, as a mistake, another setting or a run "
        f"that trained badly; with all runs {with_all}"
    )


_BEYOND = {
    "<": "of {} or more", "<=": "above {}", ">": "of {} or less", ">=": "below {}", "!=": "{}",
    "=": "not within 1% of {}", "nearest": "not the nearest of its run to {}, within 1%",
}  # fmt: skip


def _left_out(count: int, rows: int, name: str, sign: str, value: float | str, blank: bool) -> str:
    beyond = (
        _BEYOND[sign].format(f"{value:g}") if not isinstance(value, str) else "not " * (sign == "=") + repr(value[:40])
    )
    return f"{count} of {rows} rows left out as asked: {name} {beyond}{', or none' * blank}"


def _factor(value: float) -> str:
    """Two digits, without a power of ten."""
    return f"{float(f'{value:.2g}'):,.0f}" if value >= 10 else f"{value:.2g}"


def _times(ratio: float) -> str:
    return f"{_factor(ratio)} times" if ratio > 1 else f"1/{_factor(1 / ratio)} of"


def _growth(times: float) -> str:
    if times < NEARLY_ONE:
        sizes, more = "all runs have nearly one size", "runs of other sizes"
    elif times < WIDE:
        sizes, more = f"sizes differ by a factor {times:.2g} only", "runs of other sizes"
    else:
        sizes = (
            f"although sizes differ by a factor {_factor(times)}, the runs do not show where the best depth is at each"
        )
        more = "more depths about the best, at the smallest and the largest sizes,"
    return f"{sizes}: how the best depth grows with size is assumed, not seen; {more} would tell"


def _rates(left_out: int, diverged: int) -> str:
    text = "shapes trained at several learning rates: the best of each, by the mean over its seeds"
    runs = plural(left_out, "run")
    return text + (f"; {runs} at other rates left out, of which {diverged} diverged" if diverged else "")


def _quoted(names: Sequence[str], most: int = 5) -> str:
    shown = [repr(name[:40]) for name in names[:most]]
    return joined(shown if len(names) <= most else [*shown, f"{len(names) - most} more"])


def _by_shape(settings: Mapping[str, Sequence[float | str]]) -> str:
    names = list(settings)
    values = [f"{value:g}" if isinstance(value, float) else str(value)[:20] for value in settings[names[0]]]
    these = "it does" if len(names) == 1 else "they do"
    return (
        f"shapes of similar sizes differ in {_quoted(names, 3)} ({'' if len(names) == 1 else 'the first '}"
        f"{joined(values)}): what {these} passes for an effect of depth; keep one value (where {names[0][:40]}=VALUE)"
    )


def _statuses(count: int, words: Mapping[str, int]) -> str:
    shown = ", ".join(f"{word!r} {number}" for word, number in words.items())
    have = "1 run has" if count == 1 else f"{plural(count, 'run')} have"
    return f"{have} a status that is not known ({shown}): left out; write 'done' or 'diverged'"


def _hangs(what: str, groups: Sequence[str]) -> str:
    return f"{what} depends on one group: without {' or without '.join(groups)} there is none"


def _influence(row: int, others_in_group: int, name: str, errors: float, others: int) -> str:
    who = f"row {row}" + (f" and the {others_in_group} others of its group" if others_in_group else "")
    more = f", and {plural(others, 'other group')} also move{'s' * (others == 1)} one by more than 1" if others else ""
    return f"without {who}, {name} moves by {errors:.1f} of its standard errors{more}: the fit depends on single runs"


_LEFT_OUT_TERMS = {
    "drift": "the best depth moves against the base law with size: allow a drift",
    "bend": "the best depth is not quite a power of the size",
    "skew": "the bowl is steeper on one side, which this model leaves out",
    "embeddings": "the embeddings' share matters: add its term (embeddings)",
}


def _with_term(term: str, minimum: float, unit: str) -> str:
    return f"{_LEFT_OUT_TERMS[term]} (the minimum is then at {minimum:.2f} {unit})"


_TEXTS: dict[str, Callable[..., str]] = {
    # What was done to the data.
    "column-guessed": lambda column, name, table: f"{column} is the column '{name}' of {table}",
    "column-unit": lambda column, name, unit, seen: (
        f"{column} is taken to be in {unit}, as depth and width show"
        if seen
        else f"{column} is in {unit}, as the name '{name}' says"
    ),
    "experts-active": lambda name: (
        f"'{name}' is taken for the size: of a mixture of experts, parameters that one token uses count"
    ),
    "loss-from-perplexity": lambda name: f"loss is the logarithm of '{name}', a perplexity",
    "loss-in-bits": lambda name: f"'{name}' is in bits, not nats: best depths and costs in percent are the same",
    "column-ignored": lambda column: f"the column for {column} is not read, as asked",
    "losses-several": lambda name, others: (
        f"loss is the column '{name}', and {joined([repr(other) for other in others])} "
        f"{'was' if len(others) == 1 else 'were'} not read"
    ),
    "block-params-assumed": lambda: "block parameters were not given: assumed to be 12·depth·width²",
    "tokens-from-flops": lambda: "tokens were not given: assumed to be FLOPs / 6·parameters",
    "embeddings-added": lambda rows: (
        f"total parameters were not given: assumed to be the blocks and {rows}·width, one matrix of embeddings"
    ),
    "embeddings-read": lambda name, total: (
        f"block parameters were not given: they are the total less '{name}'"
        if total
        else f"total parameters were not given: they are the blocks and '{name}'"
    ),
    "embeddings-removed": lambda rows: f"block parameters are the total less {rows:g}·width",
    "seeds-unlinked": lambda: "seeds do not link all shapes: treated as repeats of a shape, not as pairs across shapes",
    "runs-unfinished": lambda count, folder: f"{plural(count, 'run')} in {folder} not finished: left out",
    "run-unreadable": lambda folder, error: f"{folder} cannot be read and is left out: {error}",
    "runs-failed": lambda count: (
        "1 run failed or has no loss: left out, it says nothing about the shape"
        if count == 1
        else f"{plural(count, 'run')} failed or have no loss: left out, they say nothing about the shape"
    ),
    "runs-diverged": lambda count: (
        "1 run diverged: its loss is taken to be above the worst of its shape, or near its size"
        if count == 1
        else f"{plural(count, 'run')} diverged: their losses are taken to be above the worst of their shape, or near "
        "their size"
    ),
    "status-unknown": _statuses,
    "rows-left-out": _left_out,
    "rows-repeated": lambda count, left_out: (
        f"{plural(count, 'row')} repeat{'s' * (count == 1)} another row exactly"
        + (
            ": left out, as the same run twice"
            if left_out
            else ": if they are the same runs twice, leave one copy out; repeats count as seeds, so the noise comes "
            "out too small"
        )
    ),
    "best-rates": _rates,
    "best-settings": lambda names, left_out, diverged: (
        f"of each shape the best {joined(names)}, by the mean over its seeds: {plural(left_out, 'other run')} left "
        f"out, of which {diverged} diverged"
    ),
    "settings-differ": lambda names: (
        f"runs of one shape differ in {_quoted(names)}, which counts as noise here: choose rows, or the best of each "
        "shape (best_of)"
    ),
    "lengths-unread": lambda names, low, high: (
        f"runs of one shape differ in {_quoted(names, 3)}{' (the first ' if len(names) > 1 else ' ('}{low:g} to "
        f"{high:g}), and tokens are not known, so this counts as noise: of checkpoints keep one length (where "
        f"{names[0][:40]}=NUMBER); of runs of different lengths map tokens"
    ),
    "settings-by-shape": _by_shape,
    "counts-merged": lambda shapes, share: (
        f"parameters of {plural(shapes, 'shape')} (one depth and width) differ by up to {100 * share:.2g}%: taken for "
        f"{'one shape' if shapes == 1 else 'one shape each'}, with the median count"
    ),
    "total-is-blocks": lambda name: (
        f"'{name[:60]}' is 12·depth·width² in every row: taken for the block parameters, and totals are not known"
    ),
    # A transition.
    "depth-left-out": lambda depth, runs, diverged: (
        f"depth {depth:g} finished at fewer than three sizes: its {runs} runs ({diverged} diverged) are left out"
    ),
    "crossing-outside": lambda shallow, deep: (
        f"the crossing of {shallow} and {deep} layers lies outside the sizes trained"
    ),
    "crossing-vanishes": lambda shallow, deep, share: (
        f"{share:.0%} of the resamples have no crossing of {shallow} and {deep} layers"
    ),
    "curves-misfit": lambda ratio: (
        f"the curves miss shapes by {ratio:.0f} times what seeds differ: a parabola does not fit so many sizes; fit "
        "fewer (where block_params>NUMBER)"
    ),
    "few-groups": lambda spare: (
        f"only {plural(spare, 'group')} more than parameters: errors mean little; train more shapes or seeds"
    ),
    "leverage": lambda count, depth, size: (
        f"{plural(count, 'group')} determine{'s' * (count == 1)} {'its' if count == 1 else 'their'} own fit (leverage "
        f"above 0.95), the first {group_name(depth, size)}"
    ),
    "embeddings-large": lambda share: (
        f"up to {share:.0%} of the parameters are embeddings: at small sizes they confound the comparison of depths"
    ),
    "line-outside": lambda: "the line uses a crossing that lies outside the data: treat a and b as a guess",
    "line-unlimited": lambda: (
        "a crossing of the line has no limit on one side: a, b and their errors are a guess"
    ),
    "depends-on-one": _hangs,
    "moves-without-one": lambda what, groups: (
        f"{what} moves by more than its error without {' or without '.join(groups)}"
    ),
    # Noise, of transitions and ridges.
    "noise-borrowed": lambda depths: (
        f"depth {joined([str(depth) for depth in depths])} has too few sizes to estimate its own noise: it gets that "
        "of all depths"
    ),
    "noise-unequal": lambda depths, noises: (
        f"depths scatter differently (noise {noise_by_depth(dict(zip(depths, noises, strict=True)))}): errors are "
        "wrong unless each depth has its own (noise depth)"
    ),
    # A ridge.
    "minimum-outside": lambda: "the minimum lies outside the depths trained",
    "bowl-hidden-by-one": lambda group: f"without the group of {group} there would be a bowl",
    "bowl-depends-on-one": lambda group: f"without the group of {group} there is no bowl",
    "minimum-moves-without-one": lambda group, minimum: (
        f"without the group of {group} the minimum moves to {minimum:.2f}, beyond its interval"
    ),
    "drift-left-out": lambda minimum, unit: _with_term("drift", minimum, unit),
    "bend-left-out": lambda minimum, unit: _with_term("bend", minimum, unit),
    "skew-left-out": lambda minimum, unit: _with_term("skew", minimum, unit),
    "embeddings-left-out": lambda minimum, unit: _with_term("embeddings", minimum, unit),
    "base-extrapolated": lambda law, fitted: (
        f"the base law '{law}' was {fitted}: here it is only a scale; try the base 'power'"
    ),
    "checkpoints-as-runs": lambda lengths: (
        f"up to {lengths} lengths of one shape count as separate runs: if they are checkpoints of one run, errors are "
        "too small; keep one (where tokens=NUMBER)"
    ),
    # The joint model.
    "misfit-correlated": lambda probability: (
        f"neighbouring shapes miss the model together (probability {probability:.0%}): intervals allow for it"
    ),
    "depth-collinear": lambda inflation: (
        f"depth follows the size in these runs ({_inflation(inflation)}): which one is best at a size cannot be seen; "
        "train three depths or more at some of the sizes"
    ),
    "ladder": lambda inflation: (
        f"tokens follow the size in these runs ({_inflation(inflation)}): what either does by itself is "
        "assumed, not seen; some runs at other lengths would tell, more sizes would not"
    ),
    "embeddings-collinear": lambda inflation: (
        f"the embeddings' share follows size and depth in these runs ({_inflation(inflation)}): what it "
        "does is assumed, not seen; another vocabulary or widths at equal size would tell"
    ),
    "tokens-collinear": lambda inflation: (
        f"tokens follow the size in these runs ({_inflation(inflation)}), and this fit has no way to tell "
        "them apart: use the joint fit, add runs at other lengths, or ignore tokens"
    ),
    "lack-of-fit": lambda ratio: (
        f"shapes miss the model by {ratio:.1f} times what seeds differ: intervals allow for it; other shapes would "
        f"help, more seeds would not{_SO_LARGE if ratio > 10 else ''}"
    ),
    "end-thin": lambda largest, known: (
        f"near {show_size(largest)}, the largest size, too few depths were run to show which is best: growth is known "
        f"up to {show_size(known)} and assumed beyond; two depths there, a factor 4 apart about the best, would tell"
    ),
    "bowl-skewed": lambda skew: (
        f"the bowl is steeper on the {'shallow' if skew > 0 else 'deep'} side (by a factor "
        f"{(1 + min(abs(skew), 0.9)) / (1 - min(abs(skew), 0.9)):.1f})"
    ),
    "diverged-decide": _diverged,
    "shape-apart": _shape_apart,
    "tokens-units": lambda low, high: (
        f"the runs had {show_count(round(low))} to {show_count(round(high))} tokens: check that all are in one unit, "
        "since the best depth is stated for a length"
    ),
    "losses-rise": lambda correlation: (
        f"losses rise with size (rank correlation {correlation:.2f}), as accuracies do: check that the column is a loss"
    ),
    "losses-large": lambda least: (
        f"all losses are {least:.3g} and more, as perplexities are: if they are, say so in the column's name (ppl), or "
        "give their logarithms"
    ),
    "losses-unread": lambda name, others: (
        f"loss is the column '{name}', of training, and {joined([repr(other) for other in others])} "
        f"{'looks' if len(others) == 1 else 'look'} like a loss too: choose one of them if it is the loss you want"
    ),
    "best-beyond-depths": lambda size, best, depth, side: (
        f"the best depth at {show_size(size)}, {best:.3g}, lies beyond the {side} run, {depth:g} layers: no run shows "
        f"that loss rises again there, so runs that are {'deeper' if side == 'deepest' else 'shallower'} are needed"
    ),
    "embeddings-unknown": lambda: (
        "how many parameters are embeddings is not known: if the vocabulary is large, what they do to small models "
        "passes for an effect of depth, and the best depth may lie outside its interval; give the total parameters or "
        "the rows of the embedding"
    ),
    "width-below-depth": lambda width, depth: (
        f"most networks are deeper than wide (medians: {depth:g} layers, width {width:g}): check that the columns of "
        "depth and width are not swapped"
    ),
    "blocks-unlike-shape": lambda ratio: (
        f"block parameters are {_times(ratio)} 12·depth·width² of the same rows (median): is the unit right, "
        "and is it the column of non-embedding parameters? Of a mixture of experts, count those that a token uses"
    ),
    "failed-by-loss": lambda count, depth, size, loss: (
        f"{plural(count, 'run')} ended far above what the others expect ({group_name(depth, size)}: loss {loss:.4g}) "
        f"and {'is' if count == 1 else 'are'} left out; if such shapes fail under this recipe, state that they diverged"
    ),
    "law-of-a-length": lambda words, by, low, high: (
        f"its best depth is stated {words}; twice the tokens multiply it by {by:.3g} ({low:.3g} to {high:.3g}), "
        "which a plan for given tokens takes into account"
    ),
    "length-beyond": lambda length, low, high: (
        f"the best depth is stated for {show_size(length)} tokens, and the runs had {show_size(low)} to "
        f"{show_size(high)}: how it shifts with tokens beyond them is assumed to go on"
    ),
    "stands-out": _stands_out,
    "total-below-blocks": lambda rows, depth, size: (
        f"{plural(rows, 'run')} {'has' if rows == 1 else 'have'} fewer total than block parameters, the most so "
        f"{group_name(depth, size)}: a rounded name such as 125M, another count, or a wrong depth or width; their "
        "difference is not used: give exact counts, or do not read the totals"
    ),
    "total-unexplained": lambda total, blocks: (
        f"total parameters are {total:.3g}·depth·width² and more, blocks {blocks:.3g}·depth·width²: what is beyond the "
        "blocks is no embedding, so its share is not used; of a mixture of experts, give active parameters as the total"
    ),
    "growth-assumed": _growth,
    "skew-assumed": lambda: (
        "whether the bowl is steeper on one side is assumed, not seen: runs farther from the best depth would tell"
    ),
    "few-cells": lambda cells, parameters: (
        f"{cells} shapes for {parameters} parameters: much of this fit is what was assumed of bowl, growth and noise, "
        "and its intervals are as wide as that; train more shapes"
    ),
    # A surface.
    "term-unseen": lambda name, exponent: (
        f"{name} went to zero: these runs do not show its term" + ", and its exponent says nothing" * exponent
    ),
    "exponent-at-limit": lambda name, value, low, high: (
        f"{name} stopped at {value:g}, the end of the range {low:g} to {high:g}: these runs do not determine it"
    ),
    "few-values": lambda name, count: f"only {count} different {name}: their exponent depends on single values",
    "collinear": lambda first, second: (
        f"{first} and {second} go together in all runs: their terms cannot be told apart"
    ),
    "influence": _influence,
    "several-minima": lambda: "the search met several minima; the best is reported",
    "resamples-unconverged": lambda count, resamples: (
        f"{count} of {resamples} resamples stopped before full convergence"
    ),
    "shape-checkpoints": lambda rows: (
        f"each shape has {rows:.0f} rows: if these are checkpoints of one run, the errors are too small; resample "
        "shapes (unit shape)"
    ),
    "errors-unknown": lambda inside: (
        f"{inside or 'no'} residuals lie near zero, too few to estimate standard errors from: has each run two losses?"
    ),
    "errors-zero": lambda: "every run lies on the surface, so its standard errors are 0: is the loss computed?",
    "count-approximate": lambda percent: (
        f"the law counts parameters as a·depth·width² + b·width, up to {percent:.0f}% off"
    ),
    "count-unrelated": lambda: (
        "the parameters of these runs do not grow with depth·width²: there is no law of depth"
    ),
    # Predictions and optima.
    "outside-size": lambda value, low, high: (
        f"{show_count(value)} parameters lie outside the runs, which have {show_count(low)} to {show_count(high)}"
    ),
    "outside-depth": lambda value, low, high: f"depth {value:g} lies outside the runs, which have {low:g} to {high:g}",
    "outside-tokens": lambda value, low, high: (
        f"{show_count(value)} tokens lie outside the runs, which have {show_count(low)} to {show_count(high)}"
    ),
    "flops-outside": lambda flops, low, high: (
        f"{flops:.3g} FLOPs lie outside the runs, which took {low:.3g} to {high:.3g}"
    ),
    "optimum-outside": lambda what, value, low, high: (
        f"the optimum's {what}, {show_count(value)}, lies outside the runs' {show_count(low)} to {show_count(high)}"
    ),
}  # fmt: skip
