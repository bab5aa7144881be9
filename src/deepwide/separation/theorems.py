"""What is known about the separation rank of a shape before anything is measured (`bounds`): the theorems of Levine et
al. (2020), what follows from them for widths, and the dimension count.

One function per theorem and corollary. Everything is a logarithm to base 3, as an Arb ball (python-flint): a value with
a proved error, so that nothing overflows at 3^(3^L) and no leading digit is lost to cancellation. Letters: L depth,
d width, H heads; equation numbers are those of arXiv 2006.12467 v1.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from flint import arb, ctx

from deepwide.answers import Answer, Note
from deepwide.errors import DeepwideError, quoted
from deepwide.separation.dimensions import check_shape, check_whole, degree, dimension_count, multiset, relations


def log3(x: arb | int) -> arb:
    """The logarithm to base 3, as a ball."""
    return arb(x).log() / arb(3).log()


def log3_multiset(n: int, k: int) -> arb:
    """log_3 binom(n + k − 1, k); the caller sets the precision."""
    return (arb(n + k).lgamma() - arb(n).lgamma() - arb(k + 1).lgamma()) / arb(3).log()


def log3_dimension_count(depth: int, width: int) -> arb:
    """log_3 of the dimension count of one head, without listing blocks (docs/theory.md, eq. 5).

    The crossing k* is found by bisection to 1 part in 2^80. Stopping at `low` ≤ k*, k* − low ≤ C·2^−80, makes the
    sum too large by at most C·2^−80·A_{C−low−1}; as Σ_{n ≤ C−low−1} A_n = A_{C−low−1}·(D + C − low − 1)/D is part of
    the sum, that is at most the share ε = C·2^−80·D/(D + C − low − 1) of it, and its logarithm is off by at most 2ε.

    >>> round(float(log3_dimension_count(2, 8)), 4), round(float(log3_dimension_count(4, 2)), 4)
    (6.2868, 7.6644)
    """
    D, c = width * (width + 1) // 2, degree(depth)
    if D == 1:
        return log3(c + 1)
    with ctx.workprec(192 + 2 * (D + c).bit_length()):
        low, high, log_d = 0, c, log3(width)
        error = arb(0)
        while low < high and (high - low) << 80 > c:
            middle = (low + high + 1) // 2
            difference = log3_multiset(D, middle) - log_d - log3_multiset(D, c - middle)
            if difference > 0:
                high = middle - 1
            elif difference <= 0:
                low = middle
            else:  # equal to all digits: from here to k* the two halves trade one for one, up to the ball's radius
                low = high = middle
                error = 4 * c * difference.rad()
        if low < high:
            error = 2 * arb(c) / 2**80 * D / (D + c - low - 1)
        halves = [log3_multiset(D + 1, low)]
        if low < c:
            halves.append(log_d + log3_multiset(D + 1, c - low - 1))
        large = max(halves, key=lambda half: float(half.mid()))
        radius = float(error.upper()) * (1 + 2**-20)
        return large + log3(sum((3 ** (half - large) for half in halves), arb(0))) + arb(0, radius)


def show_log3(value: arb) -> str:
    """A number given by its log_3, for reading: a whole number when small, digits, or a power of ten.

    >>> show_log3(log3(999)), show_log3(arb(133)), show_log3(arb(10) ** 10)
    ('999', '2.87e63', '10^4.771e9')
    """
    with ctx.workprec(256):
        tens = value * arb(3).log() / arb(10).log()
        size = float(tens)
        if size < 6:
            return f"{float(3**value):.4g}" if size < 2 else f"{float(3**value):.0f}"
        if size > 100_000:
            return f"10^{size:.4g}".replace("e+", "e").replace("e0", "e")
        exponent = int(size)
        digits = f"{float(10 ** (tens - exponent)):.2f}"
        return f"1.00e{exponent + 1}" if digits == "10.00" else f"{digits}e{exponent}"


Regime = Literal["below", "at", "above"]
_DEEPEST, _WIDEST = 2000, 10**18


def check_bounds_shape(depth: int, width: int, heads: int) -> None:
    """Refuse what is no shape, or too large to be meant.

    The paper's own example (d = 1000, H = 16) does not divide evenly, so the formulas take any heads up
    to the width; only a measurement needs heads of equal width.
    """
    check_shape(depth, width)
    if depth > _DEEPEST or width > _WIDEST:
        raise DeepwideError(
            f"Depth {quoted(depth)} and width {quoted(width)} are too large: at most {_DEEPEST} and {_WIDEST:.0e}."
        )
    if not 1 <= heads <= width:
        raise DeepwideError(f"The heads must be between 1 and the width, {width}, not {quoted(heads)}.")


@dataclass(frozen=True)
class Sides:
    """The two sides of a theorem in log_3, None where undefined, and the formulas with the numbers in them."""

    lower: arb | None
    upper: arb | None
    lower_formula: str
    upper_formula: str


def regime(depth: int, width: int) -> Regime:
    """Which side of the threshold L = log_3 d a network is on, decided in integers.

    >>> regime(6, 1000), regime(2, 9), regime(12, 768)
    ('below', 'at', 'above')
    """
    power = 3**depth
    return "below" if power < width else "at" if power == width else "above"


def why(depth: int, width: int) -> str:
    """The regime in words."""
    return {
        "below": f"{depth} < log_3 {width}: Theorem 1, depth counts doubly exponentially",
        "at": f"{depth} = log_3 {width}: the boundary, which belongs to neither theorem",
        "above": f"{depth} > log_3 {width}: Theorem 2, depth and width count alike",
    }[regime(depth, width)]


def theorem_1(depth: int, width: int, heads: int = 1) -> Sides:
    """Theorem 1, L < log_3 d (eq. 7): 3^(L−2)·(log_3(d − H) + a) ≤ log_3 sep ≤ C·log_3(d + H).

    >>> sides = theorem_1(6, 1000, 8)
    >>> round(float(sides.lower), 2), round(float(sides.upper), 1)
    (133.61, 2291.4)
    """
    L, d, H = depth, width, heads
    lower = 3 ** arb(L - 2) * (log3(d - H) + _a(L)) if d > H else None
    return Sides(
        lower, degree(L) * log3(d + H),
        f"3^{L - 2}·(log_3 {d - H} − {L} + 2 − log_3 2)" if d > H else _ONE_EACH,
        f"{degree(L)}·log_3 {d + H}",
    )  # fmt: skip


def theorem_2(depth: int, width: int, heads: int = 1) -> Sides:
    """Theorem 2, L > log_3 d: ½dL + b_1 + b_2 ≤ log_3 sep ≤ 2dL + c_1 + c_2.

    The printed c_2 is garbled in the text that we have; this reading is the one that makes dimensional sense.
    """
    L, d, H = depth, width, heads
    lower = arb(d) * L / 2 - L * (arb(H) / 2 + 1) - d * (1 + log3(arb(d - H) / 2) / 2) if d > H else None
    c2 = -2 * d * log3(arb(d) / (2 * (2 * arb(1).exp()).sqrt())) + log3(d)
    return Sides(
        lower, arb(2 * d * L) + L + c2,
        f"½·{d}·{L} − {L}·({H}/2 + 1) − {d}·(1 + ½·log_3({d - H}/2))" if d > H else _ONE_EACH,
        f"2·{d}·{L} + {L} − 2·{d}·log_3({d}/(2√(2e))) + log_3 {d}",
    )  # fmt: skip


def published(depth: int, width: int, heads: int = 1) -> Sides:
    """The theorem that applies: 1 below the threshold, 2 above it, neither on it."""
    check_bounds_shape(depth, width, heads)
    where = regime(depth, width)
    if where == "at":
        return Sides(None, None, "", "")
    return theorem_1(depth, width, heads) if where == "below" else theorem_2(depth, width, heads)


_ONE_EACH = "needs more width than heads"


def _a(depth: int) -> arb:
    return -depth + 2 - log3(2)


@dataclass(frozen=True)
class Match:
    """Corollary 1: the width a shallower network needs before Theorem 1 lets it match a deeper one."""

    form: str
    lower: arb  # log_3 of the deeper network's rank, at least
    width: arb | None  # None where the lower bound is so low that any width will do
    formula: str


FORMS = {
    "simplified": "eq. 7 as printed: 3^(L−2)·(log_3(d − H) − L + 2 − log_3 2)",
    "power": "the step before: ((n + k − 1)/k)^k, n = (d − H)/2, k = 3^(L−2)",
    "multiset": "the step before that: the multiset coefficient binom(n + k − 1, k)",
}


def corollary_1(depth: int, width: int, heads: int, shallow: int) -> list[Match]:
    """The width at which the shallower upper bound reaches the deeper lower bound, for each form of it.

    Theorem 1 of both: ((3^L' − 1)/2)·log_3(w + H) ≥ the lower bound of (L, d, H), solved for w.

    >>> [f"{float(m.width):.2e}" for m in corollary_1(6, 1000, 16, 2)]
    ['7.34e+15', '1.55e+17', '1.00e+25']
    """
    check_bounds_shape(depth, width, heads)
    if not 1 <= shallow < depth:
        raise DeepwideError(f"The depth to match from must be between 1 and {depth - 1}; it was {shallow}.")
    if regime(depth, width) != "below":
        raise DeepwideError(
            f"Corollary 1 is about networks below the threshold, and {why(depth, width)}; "
            f"the deepest one at width {width} has depth {_deepest_below(width)}."
        )
    if depth < 2 or width <= heads:
        raise DeepwideError("Corollary 1 needs a depth of at least 2 and more width than heads.")
    k = 3 ** (depth - 2)
    with ctx.workprec(128 + 2 * (width + k).bit_length()):
        n = arb(width - heads) / 2
        printed = theorem_1(depth, width, heads).lower
        assert printed is not None
        lowers = {
            "simplified": printed,
            "power": k * log3((n + k - 1) / k),
            # Between integers n the multiset coefficient means the polynomial n(n+1)…(n+k−1)/k!.
            "multiset": ((n + k).lgamma() - n.lgamma() - arb(k + 1).lgamma()) / arb(3).log(),
        }
        c = degree(shallow)
        widths = {form: 3 ** (lower / c) - heads for form, lower in lowers.items()}
        # A network of H heads is at least H wide, so a width that is no more asks for nothing.
        return [
            Match(form, lower, widths[form] if widths[form] > heads else None, FORMS[form])
            for form, lower in lowers.items()
        ]


def _deepest_below(width: int) -> int:
    depth = 0
    while 3 ** (depth + 1) < width:
        depth += 1
    return depth


@dataclass(frozen=True)
class WiderNetwork:
    """Corollary 2: a shallower and wider network whose rank is provably larger."""

    depth: int
    width: int
    beta1: arb
    beta2: arb
    lower: arb
    upper_of_given: arb
    shallower: bool


def corollary_2(depth: int, width: int, heads: int) -> WiderNetwork:
    """Corollary 2 with numbers: the least depth L' whose network of width just above 3^L' has more rank.

    Width 3^β2·d and depth log_3 d + β2 meet on the threshold. We take the first multiple of the heads
    above it, where Theorem 1 holds, and the least β2 for which its lower bound passes Theorem 2's upper
    bound of the given network.
    """
    check_bounds_shape(depth, width, heads)
    if regime(depth, width) != "above":
        raise DeepwideError(f"Corollary 2 is about networks above the threshold, and {why(depth, width)}.")
    upper, threshold = theorem_2(depth, width, heads).upper, log3(width)
    assert upper is not None
    for other in range(1, _DEEPEST):
        wide = (3**other // heads + 1) * heads
        candidate = 3 ** arb(other - 2) * (log3(wide - heads) + _a(other)) if wide > heads else arb(-1)
        if 3**other >= width and candidate > upper:
            return WiderNetwork(other, wide, threshold / depth, other - threshold, candidate, upper, other < depth)
    raise AssertionError("Theorem 1's lower bound grows like 3^L', so some L' passes any number")


def structured_bound(depth: int, width: int) -> int:
    """What the identity network alone is proved to reach with one head: multiset(d, C) − multiset(d, C − 2).

    >>> structured_bound(2, 3), structured_bound(3, 2)
    (9, 2)
    """
    check_shape(depth, width)
    c = degree(depth)
    return multiset(width, c) - (multiset(width, c - 2) if c > 1 else 0)


@dataclass(frozen=True)
class Structured:
    """A lower bound that one assignment of weights proves for generic ones."""

    value: arb
    formula: str


def structured_bounds(depth: int, width: int, heads: int = 1) -> list[Structured]:
    """Every lower bound of docs/theory.md, 5.2 and 5.3, for one shape with as many positions per side as its width.

    Inputs supported by one head's coordinates make a network of H heads one of one head and width d/H.

    >>> [round(float(bound.value), 2) for bound in structured_bounds(4, 4)]
    [6.76, 10.25, 6.29]
    """
    from deepwide.separation.growth import growths  # a measurement shows the theorem alone and does without

    if width % heads:
        return []
    d, c = width // heads, degree(depth)
    about = "" if heads == 1 else f" (width {d}: one of {heads} heads)"
    bounds = []
    with ctx.workprec(192 + 2 * (width * width + c).bit_length()):
        if d >= 2:  # eq. 12; multiset(d, C) − multiset(d, C − 2) by their ratio
            share = arb((d - 1) * (d + 2 * c - 2)) / arb((d + c - 1) * (d + c - 2))
            value = log3_multiset(d, c) + log3(share)
            bounds.append(Structured(value, f"multiset({d}, {c}) − multiset({d}, {c - 2}){about}"))
        for growth in growths(depth, width, heads):
            of = about if growth.heads == 1 else f" ({heads} heads: a Hessian modulo a prime)"
            value = log3_multiset(growth.rank + 1, growth.power)
            bounds.append(Structured(value, f"binom({growth.rank} + {growth.power}, {growth.rank}){of}"))
    return bounds


def best_structured_bound(depth: int, width: int, heads: int = 1) -> Structured | None:
    """The largest of them, if there is one."""
    return max(structured_bounds(depth, width, heads), key=lambda bound: float(bound.value), default=None)


def first_contradiction(width: int, heads: int = 1, deepest: int = 100) -> int | None:
    """The least depth at which a proved lower bound passes Theorem 2's printed upper bound, with c_2 as we read it.

    >>> first_contradiction(8), first_contradiction(3)
    (10, None)
    """
    for depth in range(1, deepest + 1):
        if regime(depth, width) == "above" and _contradicts(depth, width, heads):
            return depth
    return None


def _contradicts(depth: int, width: int, heads: int) -> bool:
    best, upper = best_structured_bound(depth, width, heads), theorem_2(depth, width, heads).upper
    return best is not None and upper is not None and bool(best.value > upper)


def passes_theorem_2(depth: int, width: int) -> bool:
    """Whether the dimension count of one head is above Theorem 2's printed upper bound (docs/theory.md, 2.2)."""
    upper = theorem_2(depth, width).upper
    return upper is not None and bool(log3_dimension_count(depth, width) > upper)


def first_crossing(width: int, deepest: int = 100) -> int | None:
    """The open question: the least depth at which the dimension count passes Theorem 2's printed upper bound.

    >>> first_crossing(8), first_crossing(10), first_crossing(3)
    (7, 6, None)
    """
    for depth in range(1, deepest + 1):
        if regime(depth, width) == "above" and passes_theorem_2(depth, width):
            return depth
    return None


DEEPEST_LISTED = 5  # deeper networks have more blocks than can be listed at once


class LogBound(Answer):
    """A bound on the rank by its log_3; `about` is the rank itself where the bound says anything."""

    log3: float
    about: str | None
    formula: str

    @classmethod
    def of(cls, value: arb, formula: str) -> "LogBound":
        return cls(log3=float(value), about=show_log3(value) if value > 0 else None, formula=formula)


class Theorem(Answer):
    """The published theorem for a shape: 1 or 2, None on the threshold between them, with its sides where defined."""

    number: int | None
    regime: Regime
    why: str
    lower: LogBound | None
    upper: LogBound | None


def theorem_for(depth: int, width: int, heads: int = 1) -> Theorem:
    """Which theorem of Levine et al. (2020) is about a shape, and what it says.

    >>> theorem_for(6, 1000, 8).lower.about
    '5.58e63'
    """
    sides, where = published(depth, width, heads), regime(depth, width)
    return Theorem(
        number={"below": 1, "above": 2}.get(where),
        regime=where,
        why=why(depth, width),
        lower=None if sides.lower is None else LogBound.of(sides.lower, sides.lower_formula),
        upper=None if sides.upper is None else LogBound.of(sides.upper, sides.upper_formula),
    )


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
    structured: LogBound | None
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
            ("structured weights, at least", self.structured),
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
    stated = theorem_for(depth, width, heads)
    matches = corollary_1(depth, width, heads, match) if match is not None else []
    with_heads = _with_heads(depth, width, heads)
    best = best_structured_bound(depth, width, heads)
    answer = Bounds(
        depth=depth,
        width=width,
        heads=heads,
        threshold=float(log3(width)),
        regime=stated.regime,
        why=stated.why,
        theorem=stated.number,
        lower=stated.lower,
        upper=stated.upper,
        structured=None if best is None else LogBound.of(best.value, best.formula),
        dimension_count=LogBound.of(
            log3_dimension_count(depth, width),
            "Σ_k min(multiset(D, k), d·multiset(D, C − k)), D = d(d+1)/2, C = (3^L − 1)/2",
        ),
        less_relations=_less_relations(depth, width, heads),
        with_heads=with_heads,
        notes=(),
        match_depth=match,
        match=tuple(MatchingWidth.of(entry) for entry in matches),
        wider=Wider.of(corollary_2(depth, width, heads)) if stated.regime == "above" else None,
    )
    return answer.model_copy(update={"notes": tuple(_notes(answer))})


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
    return LogBound.of(log3(sharper), "the same, less the relations of isotropic vectors (docs/theory.md, 4.4)")


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
        yield Note.of("on-the-threshold", "L = log_3 d belongs to neither theorem: only our own bounds apply.")
    elif answer.lower is None:
        yield Note.of("no-lower-bound", "With as many heads as width the lower bound is undefined.")
    elif answer.lower.about is None:
        yield Note.of("trivial-lower-bound", "The lower bound is trivial here: every rank is at least 1.")
    if answer.regime == "above":
        text = "Theorem 2's constant c2 is garbled in the text that we have; docs/theory.md shows how we read it."
        yield Note.of("c2-as-read", text)
        if _contradicts(depth, width, heads):
            text = (
                "The proved lower bound, for generic weights and at least as many positions per side as the width, is "
                "larger than Theorem 2's printed upper bound, with c2 as we read it; docs/theory.md, 2.2, says "
                "what that does and does not mean."
            )
            yield Note.of("above-the-printed-bound", text, heads=heads)
        else:
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
