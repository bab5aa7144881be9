"""What Levine et al. (2020) prove about the separation rank, and what follows from it for widths.

One function per theorem and corollary; everything is a logarithm to base 3 (see `logs`). Letters: L depth, d width,
H heads; equation numbers are those of arXiv 2006.12467 v1.
"""

from dataclasses import dataclass
from typing import Literal

from flint import arb, ctx

from deepwide.errors import DeepwideError, quoted
from deepwide.separation.dimensions import check_shape, degree, multiset
from deepwide.separation.logs import log3, log3_dimension_count

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


def passes_theorem_2(depth: int, width: int) -> bool:
    """Whether the dimension count of one head is above Theorem 2's printed upper bound (docs/theory.md, section 11)."""
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
