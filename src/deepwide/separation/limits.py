"""What is known about the separation rank of a shape before anything is measured: theorems and the dimension count."""

from collections.abc import Iterable
from typing import Any

from flint import arb

from deepwide.answers import Answer, Note
from deepwide.separation.case import Case
from deepwide.separation.dimensions import check_whole, dimension_count, multiset, relations
from deepwide.separation.logs import log3, log3_dimension_count, show_log3
from deepwide.separation.theorems import (
    Match,
    Regime,
    WiderNetwork,
    corollary_1,
    corollary_2,
    passes_theorem_2,
    published,
    regime,
    why,
)

DEEPEST_LISTED = 5  # deeper networks have more blocks than can be listed at once


class LogBound(Answer):
    """A bound on the rank by its log_3; `about` is the rank itself where the bound says anything."""

    log3: float
    about: str | None
    formula: str

    @classmethod
    def of(cls, value: arb, formula: str) -> "LogBound":
        return cls(log3=float(value), about=show_log3(value) if value > 0 else None, formula=formula)


class MatchingWidth(Answer):
    """Corollary 1 with one form of the lower bound; `width` is None where it asks for nothing."""

    form: str
    formula: str
    lower_log3: float
    width: float | str | None

    @classmethod
    def of(cls, match: Match) -> "MatchingWidth":
        width = None if match.width is None else float(match.width)
        if width is not None and match.width is not None and width >= 1e300:
            return cls(
                form=match.form,
                formula=match.formula,
                lower_log3=float(match.lower),
                width=match.width.str(6, radius=False),
            )
        return cls(form=match.form, formula=match.formula, lower_log3=float(match.lower), width=width)


class Wider(Answer):
    """Corollary 2: a network whose rank is provably larger, shallower or not."""

    depth: int
    width: int
    beta1: float
    beta2: float
    shallower: bool

    @classmethod
    def of(cls, network: WiderNetwork) -> "Wider":
        return cls(
            depth=network.depth, width=network.width, beta1=float(network.beta1), beta2=float(network.beta2),
            shallower=network.shallower,
        )  # fmt: skip


class Bounds(Answer):
    """How large the separation rank must and can be: the published theorem, and the proved dimension count."""

    depth: int
    width: int
    heads: int
    threshold: float
    regime: Regime
    why: str
    theorem: int | None
    lower: LogBound | None
    upper: LogBound | None
    dimension_count: LogBound
    less_relations: LogBound | None
    with_heads: LogBound | None
    notes: tuple[Note, ...]
    match_depth: int | None = None
    match: tuple[MatchingWidth, ...] = ()
    wider: Wider | None = None

    @property
    def sides(self) -> list[tuple[str, LogBound]]:
        """Every bound with its name, the theorem's first."""
        named = [
            (f"Theorem {self.theorem}, at least", self.lower),
            (f"Theorem {self.theorem}, at most", self.upper),
            ("dimension count, at most", self.dimension_count),
            ("less relations, at most", self.less_relations),
            (f"with {self.heads} heads, at most", self.with_heads),
        ]
        return [(name, side) for name, side in named if side is not None]

    def rows(self) -> list[dict[str, Any]]:
        """One row per bound."""
        shape = {"depth": self.depth, "width": self.width, "heads": self.heads}
        return [{**shape, "bound": name, **side.model_dump()} for name, side in self.sides]


def bounds(depth: int, width: int, heads: int = 1, *, match: int | None = None) -> Bounds:
    """Theorems 1 and 2 of Levine et al. (2020) and the dimension count, for one shape.

    `match` asks Corollary 1 how wide a network of that smaller depth must be to reach the same rank.

    >>> answer = bounds(6, 1000, 8)
    >>> answer.theorem, round(answer.lower.log3, 2), round(answer.upper.log3, 1)
    (1, 133.61, 2291.4)
    """
    check_whole(depth=depth, width=width, heads=heads, **({} if match is None else {"match": match}))
    sides = published(depth, width, heads)
    where = regime(depth, width)
    matches = corollary_1(depth, width, heads, match) if match is not None else []
    with_heads = _with_heads(depth, width, heads)
    answer = Bounds(
        depth=depth,
        width=width,
        heads=heads,
        threshold=float(log3(width)),
        regime=where,
        why=why(depth, width),
        theorem={"below": 1, "above": 2}.get(where),
        lower=None if sides.lower is None else LogBound.of(sides.lower, sides.lower_formula),
        upper=None if sides.upper is None else LogBound.of(sides.upper, sides.upper_formula),
        dimension_count=LogBound.of(
            log3_dimension_count(depth, width),
            "Σ_k min(multiset(D, k), d·multiset(D, C − k)), D = d(d+1)/2, C = (3^L − 1)/2",
        ),
        less_relations=_less_relations(depth, width, heads),
        with_heads=with_heads,
        notes=(),
        match_depth=match,
        match=tuple(MatchingWidth.of(entry) for entry in matches),
        wider=Wider.of(corollary_2(depth, width, heads)) if where == "above" else None,
    )
    return answer.model_copy(update={"notes": tuple(_notes(answer))})


def bounds_of(case: Case) -> Bounds | None:
    """The bounds of a case, if the theorems are about it: random weights, equal sides, neither mask nor residual."""
    return bounds(case.depth, case.width, case.heads) if case.standard else None


def _with_heads(depth: int, width: int, heads: int) -> LogBound | None:
    """The count for more heads has no closed sum, so it is given where its blocks can be listed quickly."""
    if heads == 1 or width % heads or depth > DEEPEST_LISTED:
        return None
    total = dimension_count(depth, width, heads).total
    return LogBound.of(log3(total), f"the same, reduced to the {width * width // heads} forms that {heads} heads see")


def _less_relations(depth: int, width: int, heads: int) -> LogBound | None:
    """The sharper count of one head, where blocks can be listed quickly and it differs."""
    if heads > 1 or depth > DEEPEST_LISTED:
        return None
    plain, D = dimension_count(depth, width), width * (width + 1) // 2
    left = (multiset(D, k) - relations(depth, width, k) for k in range(len(plain.blocks)))
    sharper = sum(map(min, plain.blocks, left))
    if sharper == plain.total:
        return None
    return LogBound.of(log3(sharper), "the same, less the relations of isotropic vectors (docs/theory.md, 5.4)")


def _notes(answer: Bounds) -> Iterable[Note]:
    depth, width, heads = answer.depth, answer.width, answer.heads
    if width % heads:
        text = (
            f"{heads} heads do not divide a width of {width}. The theorems allow that, the dimension count with heads "
            "does not: the count shown is that of one head."
        )
        yield Note.of("heads-do-not-divide", text, heads=heads, width=width)
    elif heads > 1 and answer.with_heads is None:
        text = (
            f"The dimension count with {heads} heads has no closed form, and beyond depth {DEEPEST_LISTED} too many "
            "blocks to list: the count shown is that of one head, which is never smaller."
        )
        yield Note.of("heads-not-counted", text, heads=heads, deepest=DEEPEST_LISTED)
    if answer.regime == "at":
        yield Note.of("on-the-threshold", "L = log_3 d belongs to neither theorem: only the dimension count applies.")
    elif answer.lower is None:
        yield Note.of("no-lower-bound", "With as many heads as width the lower bound is undefined.")
    elif answer.lower.about is None:
        yield Note.of("trivial-lower-bound", "The lower bound is trivial here: every rank is at least 1.")
    if answer.regime == "above":
        text = "Theorem 2's constant c2 is garbled in the text that we have; docs/theory.md shows how we read it."
        yield Note.of("c2-as-read", text)
        yield from _open_question(depth, width, heads, answer)


def _open_question(depth: int, width: int, heads: int, answer: Bounds) -> Iterable[Note]:
    """About these heads where their own count is known, else about one head: the printed bound is the same."""
    assert answer.upper is not None
    known = heads == 1 or answer.with_heads is not None
    if answer.with_heads is not None:
        passes, whose = answer.with_heads.log3 > answer.upper.log3, f"the dimension count with {heads} heads"
    else:
        passes, whose = passes_theorem_2(depth, width), "the dimension count" + " of one head" * (heads > 1)
    if passes:
        text = (
            f"Open question: {whose} is larger than Theorem 2's printed upper bound. Either ranks stop reaching the "
            "count at such depths, or the printed bound assumes something that is not in the text that we have."
        )
        if not known:
            text += f" Whether the count with {heads} heads is larger too is not known here."
        yield Note.of("open-question", text, heads=heads, known=known)
