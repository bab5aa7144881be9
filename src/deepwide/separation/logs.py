"""Numbers too large to write, by their logarithm to base 3, as Arb balls (python-flint): a value with a proved error.

So nothing overflows at 3^(3^L) and no leading digit is lost to cancellation.
"""

from flint import arb, ctx

from deepwide.separation.dimensions import degree


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
