"""What Levine et al. (2020) prove about the separation rank, and what follows from it for widths.

Everything is a logarithm to base 3, held as an Arb ball (python-flint): a number with a proved error,
so that nothing overflows at 3^(3^L) and no leading digit is lost to cancellation. Letters: L depth,
d width, H heads; equation numbers are those of arXiv 2006.12467 v1.
"""

from dataclasses import dataclass
from typing import Literal

from flint import arb, ctx

from deepwide.errors import DeepwideError
from deepwide.separation.counting import check_shape, degree, multiset

Regime = Literal["below", "at", "above"]
_DEEPEST, _WIDEST = 2000, 10**18


def log3(x: arb | int) -> arb:
    """The logarithm to base 3, as a ball."""
    return arb(x).log() / arb(3).log()


def check_bounds_shape(depth: int, width: int, heads: int) -> None:
    """Refuse what is no shape, or too large to be meant.

    The paper's own example (d = 1000, H = 16) does not divide evenly, so the formulas take any heads up
    to the width; only a measurement needs heads of equal width.
    """
    check_shape(depth, width)
    if not 1 <= heads <= width:
        raise DeepwideError(f"The heads must be between 1 and the width, {width}; they were {heads}.")
    if depth > _DEEPEST or width > _WIDEST:
        raise DeepwideError(f"Depth {depth} and width {width} are too much: at most {_DEEPEST} and {_WIDEST:.0e}.")


@dataclass(frozen=True)
class Bounds:
    """The theorem that applies, its two sides in log_3, and the formulas with the numbers in them."""

    depth: int
    width: int
    heads: int
    regime: Regime
    threshold: arb
    lower: arb | None
    upper: arb | None
    lower_formula: str
    upper_formula: str

    @property
    def theorem(self) -> int | None:
        return {"below": 1, "above": 2}.get(self.regime)

    @property
    def why(self) -> str:
        return {
            "below": f"{self.depth} < log_3 {self.width}: Theorem 1, depth counts doubly exponentially",
            "at": f"{self.depth} = log_3 {self.width}: the boundary, which belongs to neither theorem",
            "above": f"{self.depth} > log_3 {self.width}: Theorem 2, depth and width count alike",
        }[self.regime]


def regime(depth: int, width: int) -> Regime:
    """Which side of the threshold L = log_3 d a network is on, decided in integers.

    >>> regime(6, 1000), regime(2, 9), regime(12, 768)
    ('below', 'at', 'above')
    """
    power = 3**depth
    return "below" if power < width else "at" if power == width else "above"


def bounds(depth: int, width: int, heads: int = 1) -> Bounds:
    """Theorem 1 below the threshold, Theorem 2 above it, neither on it.

    >>> b = bounds(6, 1000, 8)
    >>> b.theorem, round(float(b.lower), 2), round(float(b.upper), 1)
    (1, 133.61, 2291.4)
    """
    check_bounds_shape(depth, width, heads)
    where = regime(depth, width)
    threshold = log3(width)
    L, d, H = depth, width, heads
    if where == "below":
        lower = 3 ** arb(L - 2) * (log3(d - H) + _a(L)) if d > H else None
        return Bounds(
            L, d, H, where, threshold, lower, degree(L) * log3(d + H),
            f"3^{L - 2}·(log_3 {d - H} − {L} + 2 − log_3 2)" if d > H else _ONE_EACH,
            f"{degree(L)}·log_3 {d + H}",
        )  # fmt: skip
    if where == "at":
        return Bounds(L, d, H, where, threshold, None, None, "", "")
    lower = None
    if d > H:
        lower = arb(d) * L / 2 - L * (arb(H) / 2 + 1) - d * (1 + log3(arb(d - H) / 2) / 2)
    # The printed c2 is garbled in the text to hand; this reading is the one that makes dimensional sense.
    c2 = -2 * d * log3(arb(d) / (2 * (2 * arb(1).exp()).sqrt())) + log3(d)
    return Bounds(
        L, d, H, where, threshold, lower, arb(2 * d * L) + L + c2,
        f"½·{d}·{L} − {L}·({H}/2 + 1) − {d}·(1 + ½·log_3({d - H}/2))" if d > H else _ONE_EACH,
        f"2·{d}·{L} + {L} − 2·{d}·log_3({d}/(2√(2e))) + log_3 {d}",
    )  # fmt: skip


_ONE_EACH = "needs more width than heads"


def _a(depth: int) -> arb:
    return -depth + 2 - log3(2)


@dataclass(frozen=True)
class Match:
    """Corollary 1: the width a shallower network needs before Theorem 1 lets it match a deeper one."""

    form: str
    lower: arb  # log_3 of the deeper network's rank, at least
    width: arb | None  # None where the lower bound is so low that any width will do
    where_from: str


FORMS = {
    "simplified": "eq. 7 as printed: 3^(L−2)·(log_3(d − H) − L + 2 − log_3 2)",
    "power": "the step before: ((n + k − 1)/k)^k, n = (d − H)/2, k = 3^(L−2)",
    "multiset": "the step before that: the multiset coefficient binom(n + k − 1, k)",
}


def match(depth: int, width: int, heads: int, shallow: int) -> list[Match]:
    """The width at which the shallower upper bound reaches the deeper lower bound, for each form of it.

    Theorem 1 of both: ((3^L' − 1)/2)·log_3(w + H) ≥ the lower bound of (L, d, H), solved for w.

    >>> [f"{float(m.width):.2e}" for m in match(6, 1000, 16, 2)]
    ['7.34e+15', '1.55e+17', '1.00e+25']
    """
    check_bounds_shape(depth, width, heads)
    if not 1 <= shallow < depth:
        raise DeepwideError(f"The depth to match from must be between 1 and {depth - 1}; it was {shallow}.")
    if regime(depth, width) != "below":
        raise DeepwideError(
            f"Corollary 1 is about networks below the threshold, and {bounds(depth, width, heads).why}; "
            f"the deepest it speaks of at width {width} is {_deepest_below(width)}."
        )
    if depth < 2 or width <= heads:
        raise DeepwideError("Corollary 1 needs a depth of at least 2 and more width than heads.")
    k = 3 ** (depth - 2)
    with ctx.workprec(128 + 2 * (width + k).bit_length()):
        n = arb(width - heads) / 2
        printed = bounds(depth, width, heads).lower
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
class Widening:
    """Corollary 2: a shallower and wider network whose rank is provably larger."""

    depth: int
    width: int
    beta1: arb
    beta2: arb
    lower: arb
    upper_of_given: arb
    shallower: bool


def widen(depth: int, width: int, heads: int) -> Widening:
    """Corollary 2 with numbers: the least depth L' whose network of width just above 3^L' has more rank.

    Width 3^β2·d and depth log_3 d + β2 meet on the threshold. We take the first multiple of the heads
    above it, where Theorem 1 holds, and the least β2 for which its lower bound passes Theorem 2's upper
    bound of the given network.
    """
    check_bounds_shape(depth, width, heads)
    given = bounds(depth, width, heads)
    if given.regime != "above" or given.upper is None:
        raise DeepwideError(f"Corollary 2 is about networks above the threshold, and {given.why}.")
    for other in range(1, _DEEPEST):
        wide = (3**other // heads + 1) * heads
        candidate = 3 ** arb(other - 2) * (log3(wide - heads) + _a(other)) if wide > heads else arb(-1)
        if 3**other >= width and candidate > given.upper:
            beta1, beta2 = given.threshold / depth, other - given.threshold
            return Widening(other, wide, beta1, beta2, candidate, given.upper, other < depth)
    raise AssertionError("Theorem 1's lower bound grows like 3^L', so some L' passes any number")


def log3_multiset(n: int, k: int) -> arb:
    """log_3 binom(n + k − 1, k); the caller sets the precision."""
    return (arb(n + k).lgamma() - arb(n).lgamma() - arb(k + 1).lgamma()) / arb(3).log()


def log3_count(depth: int, width: int) -> arb:
    """log_3 of the exact count, without listing blocks; see `counting.total` for the two halves.

    The crossing k* is found by bisection to 1 part in 2^80. At the crossing the two halves trade one
    for one, and the sum is the least of all covers (docs/theory.md), so stopping short of it costs
    less than D·2^−79, which is added to the ball.

    >>> round(float(log3_count(2, 8)), 4), round(float(log3_count(4, 2)), 4)
    (6.2868, 7.6644)
    """
    check_bounds_shape(depth, width, 1)
    D, c = width * (width + 1) // 2, degree(depth)
    if D == 1:
        return log3(c + 1)
    with ctx.workprec(192 + 2 * (D + c).bit_length()):
        low, high, log_d = 0, c, log3(width)
        while low < high and (high - low) << 80 > c:
            middle = (low + high + 1) // 2
            if log3_multiset(D, middle) <= log_d + log3_multiset(D, c - middle):
                low = middle
            else:
                high = middle - 1
        slack = arb(0, 0 if low == high else D * 2.0**-79)
        halves = [log3_multiset(D + 1, low)]
        if low < c:
            halves.append(log_d + log3_multiset(D + 1, c - low - 1))
        large = max(halves, key=lambda half: float(half.mid()))
        return large + log3(sum((3 ** (half - large) for half in halves), arb(0))) + slack


def structured_bound(depth: int, width: int) -> int:
    """What the identity network alone is proved to reach with one head: multiset(d, C) − multiset(d, C − 2).

    >>> structured_bound(2, 3), structured_bound(3, 2)
    (9, 2)
    """
    check_shape(depth, width)
    c = degree(depth)
    return multiset(width, c) - (multiset(width, c - 2) if c > 1 else 0)


def first_crossing(width: int, deepest: int = 100) -> int | None:
    """The open question: the least depth at which the count passes Theorem 2's printed upper bound.

    >>> first_crossing(8), first_crossing(10), first_crossing(3)
    (7, 6, None)
    """
    for depth in range(1, deepest + 1):
        found = bounds(depth, width)
        if found.theorem == 2 and found.upper is not None and log3_count(depth, width) > found.upper:
            return depth
    return None


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
