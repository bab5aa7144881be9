"""ListOps: the value of a nested expression of lists (Nangia & Bowman 2018, as Long Range Arena draws it).

An expression is an operator, 2 to `arguments` arguments and a closing bracket, as in [MAX 2 9 [MIN 4 7 ] 0 ]. An
argument is an operator again with probability ¼, down to `depth` levels, else a digit. Expressions whose length is not
between `shortest` and `longest` tokens are drawn again; Long Range Arena has 500 to 2,000. All examples of a batch are
drawn side by side, token by token.

Letters: B examples, L lanes (attempts at examples), T tokens.
"""

from typing import Annotated, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from deepwide.shape import Head, Kind
from deepwide.tasks.generated import Draw, Generated, Integers
from deepwide.tasks.task import Batch

DIGITS = 10
OPERATORS = ("MIN", "MAX", "MED", "SM")  # smallest, largest, median rounded down, sum modulo 10
CLOSE = DIGITS + len(OPERATORS)
RANDOM = 2**62
ATTEMPTS = 8  # at each example at a time


class ListOps(Generated):
    """What an expression of nested lists is worth, 0 to 9. An encoder reads it.

    Tokens: the digits; then MIN, MAX, MED and SM, each with its opening bracket; then the closing bracket.
    """

    name: ClassVar[str] = "listops"
    kind: ClassVar[Kind] = "encoder"
    head: ClassVar[Head] = "class"

    shortest: Annotated[int, Field(ge=4, le=10_000, description="tokens of an expression at least")] = 16
    longest: Annotated[int, Field(ge=8, le=10_000, description="tokens of an expression at most")] = 64
    depth: Annotated[int, Field(ge=2, le=50, description="levels of nesting, digits included")] = 10
    arguments: Annotated[int, Field(ge=2, le=50, description="arguments of an operator at most")] = 10

    @model_validator(mode="after")
    def _can_be_drawn(self) -> Self:
        if self.longest < self.shortest + 4:
            raise ValueError(f"longest ({self.longest}) must be at least shortest + 4 = {self.shortest + 4}")
        largest = sum(self.arguments**level for level in range(self.depth)) + 1
        if self.shortest > largest / 4:
            raise ValueError(
                f"expressions of {self.shortest} tokens are too rare with depth {self.depth} and {self.arguments} "
                "arguments: make them shorter"
            )
        return self

    @property
    def vocab(self) -> int:
        return CLOSE + 1

    @property
    def context(self) -> int:
        return self.longest

    @property
    def classes(self) -> int:
        return DIGITS

    def generate(self, draw: Draw) -> Batch:
        tokens_BT = np.zeros((len(draw), self.longest), dtype=np.int64)
        lengths_B = np.zeros(len(draw), dtype=np.int64)
        while (open_B := lengths_B == 0).any():
            random_LT = draw.below(RANDOM, ATTEMPTS * self.longest).reshape(len(draw), ATTEMPTS, self.longest)[open_B]
            drawn_LT, length_L = self.expressions(random_LT.reshape(-1, self.longest))
            fits = ((length_L >= self.shortest) & (length_L <= self.longest)).reshape(-1, ATTEMPTS)
            rows, first = np.flatnonzero(open_B), fits.argmax(1)
            lane = np.arange(len(rows)) * ATTEMPTS + first
            good = fits.any(1)
            tokens_BT[rows[good]], lengths_B[rows[good]] = drawn_LT[lane[good]], length_L[lane[good]]
        real_BT = np.arange(self.longest)[None, :] < lengths_B[:, None]
        tokens_BT = np.where(real_BT, tokens_BT, 0)
        return Batch.of(tokens_BT, values(tokens_BT, real_BT, self.depth), padding=real_BT)

    def expressions(self, random_LT: Integers) -> tuple[Integers, Integers]:
        """Expressions from random numbers below 2⁶², and their lengths; one that is too long has a length beyond T.

        The first token is an operator: a single digit is shorter than any expression that is wanted.
        """
        L, T = random_LT.shape
        is_operator_LT = random_LT % 4 == 0
        operator_LT, digit_LT = DIGITS + (random_LT >> 8) % len(OPERATORS), (random_LT >> 8) % DIGITS
        arguments_LT = 2 + (random_LT >> 32) % (self.arguments - 1)
        tokens_LT, length_L, lanes = np.zeros((L, T), dtype=np.int64), np.full(L, T + 1), np.arange(L)
        left = np.zeros((L, self.depth), dtype=np.int64)  # arguments still to come, by level
        level = np.zeros(L, dtype=np.int64)  # of the innermost open operator
        tokens_LT[:, 0], left[:, 0] = operator_LT[:, 0], arguments_LT[:, 0]
        for t in range(1, T):
            here = (np.arange(len(lanes)), level)
            closes = left[here] == 0
            opens = ~closes & is_operator_LT[lanes, t] & (level + 2 < self.depth)
            token = np.where(closes, CLOSE, np.where(opens, operator_LT[lanes, t], digit_LT[lanes, t]))
            tokens_LT[lanes, t] = token
            left[here] -= ~closes
            level = level + opens - closes
            inner = np.flatnonzero(opens)
            left[inner, level[inner]] = arguments_LT[lanes[inner], t]
            if (ended := level < 0).any():
                length_L[lanes[ended]] = t + 1
                lanes, level, left = lanes[~ended], level[~ended], left[~ended]
                if not len(lanes):
                    break
        return tokens_LT, length_L


def values(tokens_BT: Integers, real_BT: NDArray[np.bool_], depth: int) -> Integers:
    """What every expression is worth, by a stack of open operators."""
    B, T = tokens_BT.shape
    operator = np.zeros((B, depth), dtype=np.int64)
    counts = np.zeros((B, depth, DIGITS), dtype=np.int64)  # how often each digit is among the arguments so far
    level, answer_B, rows = np.full(B, -1), np.zeros(B, dtype=np.int64), np.arange(B)
    for t in range(T):
        token = np.where(real_BT[:, t], tokens_BT[:, t], -1)
        opens = rows[token >= DIGITS][token[token >= DIGITS] < CLOSE]
        level[opens] += 1
        operator[opens, level[opens]] = token[opens] - DIGITS
        counts[opens, level[opens]] = 0
        value = token.copy()
        closes = np.flatnonzero(token == CLOSE)
        if len(closes):
            value[closes] = _applied(operator[closes, level[closes]], counts[closes, level[closes]])
            level[closes] -= 1
        ended = closes[level[closes] < 0]
        answer_B[ended] = value[ended]
        given = rows[((token >= 0) & (token < DIGITS)) | (token == CLOSE)]
        given = given[level[given] >= 0]
        counts[given, level[given], value[given]] += 1
    return answer_B


def _applied(operator_N: Integers, counts_ND: Integers) -> Integers:
    """An operator's value from how often each digit is among its arguments."""
    total_N, until_ND = counts_ND.sum(1), counts_ND.cumsum(1)
    middle = [(until_ND > place[:, None]).argmax(1) for place in ((total_N - 1) // 2, total_N // 2)]
    some_ND = counts_ND > 0
    results = (
        some_ND.argmax(1),
        DIGITS - 1 - some_ND[:, ::-1].argmax(1),
        (middle[0] + middle[1]) // 2,
        (counts_ND * np.arange(DIGITS)).sum(1) % DIGITS,
    )
    return np.choose(operator_N, results)
