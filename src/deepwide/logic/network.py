"""B-RASP compiled into the weights of our own transformer with hard attention: one layer per level of depth.

The residual stream holds bits. The embedding writes one bit per letter. An attention rightmost[M, S] V : D of depth l
is a head of layer l: its query is the constant 1 and its key S, so that the largest score, 1, is where S is true, and
the kind of head (`looks`) takes the rightmost. Its value is the pair S, S & V: the head writes whether such a position
was there and whether V was true at it. Nothing qualifies if S is 0 at the chosen position, or if the mask allows none
and the head returns 0. Then P = (S & V at j) | (not S at j) & D, which later parts compute.

What a layer's keys and values need is written by the feed-forward of a layer before it, or is a sum of letters. A
Boolean function is the sum of disjoint conjunctions (the paths to 1 in its decision diagram), and a conjunction of bits
is one unit: relu(Σ positive − Σ negated − (number of positive − 1)). So the feed-forward is as wide as the layer's
functions have different conjunctions; that number can double with each bit that a function depends on.

All numbers are small integers, so that the network computes exactly in any floating-point format.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deepwide.errors import DeepwideError
from deepwide.logic.brasp import Attention, Boolean, Program, is_letter
from deepwide.logic.decisions import Decision, Term
from deepwide.logic.ltl import Place
from deepwide.logic.words import check_alphabet
from deepwide.model import Architecture, Look, Transformer
from deepwide.shape import Shape

WIDEST = 20_000  # channels or feed-forward units, beyond which a network is refused
TOGETHER = 2_000_000  # attention weights of one layer that are computed at a time


class Linear(NamedTuple):
    """A bit as a sum of channels of the residual stream and a constant."""

    weights: tuple[tuple[int, float], ...]
    bias: float


class Head(NamedTuple):
    """One attention of a program in the network."""

    layer: int
    head: int
    look: Look
    vectors: tuple[str, ...]  # the vectors of the program that it computes


@dataclass(frozen=True)
class Network:
    """A compiled program: an ordinary Transformer, its alphabet, and where it is read."""

    model: Transformer
    alphabet: str
    at: Place
    heads: tuple[Head, ...]

    @property
    def shape(self) -> Shape:
        """The shape that can be counted."""
        design: Architecture = self.model.design
        return design.shape

    def accepts(self, words: Sequence[str]) -> NDArray[np.bool_]:
        """For each word the network's answer: the larger of its logits 0 and 1 at the position that is read."""
        if isinstance(words, str):
            raise DeepwideError(f"words must be a list of words, not the text {words[:40]!r}.")
        answers = np.zeros(len(words), dtype=bool)
        for rows in self._batches(words):
            tokens_BT, padding_BT = self.tokens([words[row] for row in rows])
            with torch.no_grad():
                logits_BTV = self.model(tokens_BT, padding_BT=padding_BT)
            place_B = padding_BT.sum(1) - 1 if self.at == "last" else torch.zeros(len(rows), dtype=torch.long)
            read_BV = logits_BTV[torch.arange(len(rows)), place_B]
            answers[rows] = (read_BV[:, 1] > read_BV[:, 0]).numpy()
        return answers

    def patterns(self, word: str) -> list[tuple[Head, Tensor]]:
        """What each head looks at on a word: T T, row i has a 1 at the position that i takes its value from."""
        tokens_BT, padding_BT = self.tokens([word])
        with torch.no_grad():
            _, cache = self.model.run_with_cache(tokens_BT, ["blocks.*.attention.pattern"], padding_BT=padding_BT)
        return [(each, cache[f"blocks.{each.layer}.attention.pattern"][0, each.head]) for each in self.heads]

    def tokens(self, words: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Words as numbers of letters, and where there is a letter."""
        code = {letter: index for index, letter in enumerate(self.alphabet)}
        for word in words:
            if not word or set(word) - set(self.alphabet):
                raise DeepwideError(f"{word[:40]!r} is not a word over {self.alphabet!r} with at least one letter.")
            if len(word) > self.shape.context:
                raise DeepwideError(f"a word of {len(word)} letters does not fit a context of {self.shape.context}.")
        T = max(map(len, words))
        tokens_BT = torch.tensor([[code[letter] for letter in word] + [0] * (T - len(word)) for word in words])
        return tokens_BT, torch.arange(T) < torch.tensor([[len(word)] for word in words])

    def _batches(self, words: Sequence[str]) -> Iterator[list[int]]:
        order, start = sorted(range(len(words)), key=lambda row: len(words[row])), 0
        while start < len(order):
            end = start
            while end < len(order) and (end - start + 1) * self.shape.heads * len(words[order[end]]) ** 2 <= TOGETHER:
                end += 1
            yield order[start : max(end, start + 1)]
            start = max(end, start + 1)


@dataclass
class _Plan:
    """What the compiler has decided so far: channels, feed-forward units and heads by layer."""

    alphabet: str
    depth: int
    channels: int = 0
    bits: dict[int, tuple[int, int]] = field(default_factory=dict)  # bit: the layer that writes it, its channel
    units: list[dict[Term, int]] = field(default_factory=list)  # of each layer
    outputs: list[list[tuple[int, int, float]]] = field(default_factory=list)  # of each layer: channel, unit, weight
    biases: list[dict[int, float]] = field(default_factory=list)  # of each layer's feed-forward: by channel
    written: dict[Decision, Linear] = field(default_factory=dict)

    def new_channel(self) -> int:
        self.channels += 1
        if self.channels > WIDEST:
            raise DeepwideError(
                f"the network would be wider than {WIDEST:,}: it is compiled for smaller programs only."
            )
        return self.channels - 1

    def term(self, term: Term) -> tuple[list[tuple[int, float]], float]:
        """The sum that is 1 if a conjunction holds and at most 0 otherwise."""
        every = len(term.letters) == len(self.alphabet)
        weights = [] if every else [(self.alphabet.index(letter), 1.0) for letter in sorted(term.letters)]
        weights += [(self.bits[bit][1], 1.0) for bit in sorted(term.ones)]
        weights += [(self.bits[bit][1], -1.0) for bit in sorted(term.zeros)]
        return weights, float(1 - len(term.ones) - (not every))

    def linear(self, function: Decision) -> Linear:
        """A function as a sum of channels; a new channel, which a feed-forward fills, if it is not one already."""
        if function not in self.written:
            self.written[function] = self._sum(function)
        return self.written[function]

    def _sum(self, function: Decision) -> Linear:
        sign, shorter = (1.0, function) if function.size <= (~function).size else (-1.0, ~function)
        if shorter.size > WIDEST:
            raise DeepwideError(f"a feed-forward would be wider than {WIDEST:,}: simplify the Boolean parts.")
        terms = shorter.terms()
        bias = 0.0 if sign == 1 else 1.0
        if not terms:
            return Linear((), bias)
        if (
            len(terms) == 1
            and (len(terms[0].ones) + len(terms[0].zeros) + (len(terms[0].letters) < len(self.alphabet))) <= 1
        ):
            weights, constant = self.term(terms[0])  # one literal: linear as it is
            return Linear(tuple((channel, sign * weight) for channel, weight in weights), bias + sign * constant)
        layer = max(self.bits[bit][0] for bit in function.bits)
        channel = self.new_channel()
        for term in terms:
            unit = self.units[layer].setdefault(term, len(self.units[layer]))
            self.outputs[layer].append((channel, unit, sign))
        self.biases[layer][channel] = bias
        return Linear(((channel, 1.0),), 0.0)


def compile_program(program: Program, alphabet: str, *, context: int = 4096) -> Network:
    """A network that answers as the program does, with as many layers as the program is deep (at least one)."""
    alphabet = check_alphabet(alphabet, program.letters)
    simple = _needed(program.simple)
    depths, depth = simple.depths, max(simple.depth, 1)
    plan = _Plan(alphabet, depth, channels=len(alphabet))
    for _ in range(depth):
        plan.units.append({})
        plan.outputs.append([])
        plan.biases.append({})
    values: dict[str, Decision] = {f"Q_{letter}": Decision.letter(alphabet, letter) for letter in alphabet}
    no, yes = Decision.constant(alphabet, False), Decision.constant(alphabet, True)

    def value(part: Boolean) -> Decision:
        return part.fold(lambda leaf: values[leaf.name], no, yes, _operate)

    wanted: dict[tuple[int, Look, Decision, Decision], dict[str, Any]] = {}
    for each in simple.definitions:
        rule = each.rule
        if not isinstance(rule, Attention):
            values[each.name] = value(rule)
            continue
        score, default = value(rule.score), value(rule.default)
        both, layer = score & value(rule.value), depths[each.name] - 1
        look: Look = f"{rule.side} {rule.mask}"  # type: ignore[assignment]
        head = wanted.setdefault((layer, look, score, both), {"names": [], "seen": None, "chosen": None})
        head["names"].append(each.name)
        if head["chosen"] is None:
            head["chosen"] = _new_bit(plan, layer)
        result = Decision.bit(alphabet, head["chosen"])
        if default != no:
            if head["seen"] is None:
                head["seen"] = _new_bit(plan, layer)
            result = result | (~Decision.bit(alphabet, head["seen"]) & default)
        values[each.name] = result
    reads = {key: (plan.linear(key[2]), plan.linear(key[3])) for key in wanted}
    answer = plan.linear(values[simple.definitions[-1].name])
    looks, places = _heads(list(wanted))
    design = Architecture.of(
        depth=depth,
        width=plan.channels,
        heads=len(looks),
        head_dim=2,
        ff_width=max(map(len, plan.units)),
        ff_bias=any(plan.units),
        vocab=max(2, len(alphabet)),
        context=context,
        kind="encoder",
        positions="none",
        norm="none",
        final_norm=False,
        tied=False,
        head_bias=True,
        attention="hard",
        looks=looks,
        activation="relu",
    )
    model = Transformer(design).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        _write(model, plan, answer)
        for key, (score_sum, both_sum) in reads.items():
            _write_head(model, plan, key[0], places[key], score_sum, both_sum, wanted[key])
    heads = tuple(Head(key[0], places[key], key[1], tuple(head["names"])) for key, head in wanted.items())
    return Network(model, alphabet, program.at, heads)


def _new_bit(plan: _Plan, layer: int) -> int:
    bit = len(plan.bits)
    plan.bits[bit] = (layer, plan.new_channel())
    return bit


def _needed(program: Program) -> Program:
    """Without the definitions that the answer does not use."""
    needed, definitions = {program.definitions[-1].name}, []
    for each in reversed(program.definitions):
        if each.name in needed:
            needed |= {name for name in each.uses if not is_letter(name)}
            definitions.append(each)
    return Program(tuple(reversed(definitions)), program.at)


def _operate(op: str, args: list[Decision]) -> Decision:
    return ~args[0] if op == "!" else args[0] & args[1] if op == "&" else args[0] | args[1]


def _heads(wanted: list[tuple[int, Look, Decision, Decision]]) -> tuple[tuple[Look, ...], dict[Any, int]]:
    """Every layer has the same kinds of heads: of each kind as many as its busiest layer needs."""
    most: Counter[Look] = Counter()
    for (_, look), count in Counter((layer, look) for layer, look, *_ in wanted).items():
        most[look] = max(most[look], count)
    looks: tuple[Look, ...] = tuple(look for look in sorted(most) for _ in range(most[look])) or ("rightmost none",)
    places, taken = {}, Counter[tuple[int, Look]]()
    for key in wanted:
        layer, look, *_ = key
        places[key] = looks.index(look) + taken[layer, look]
        taken[layer, look] += 1
    return looks, places


def _write(model: Any, plan: _Plan, answer: Linear) -> None:
    """Embedding, feed-forward and head."""
    for index in range(len(plan.alphabet)):
        model.embedding.weight[index, index] = 1.0
    for layer, units in enumerate(plan.units):
        feed_forward = model.blocks[layer].feed_forward
        for term, unit in units.items():
            weights, constant = plan.term(term)
            for channel, weight in weights:
                feed_forward.up.weight[unit, channel] = weight
            feed_forward.up.bias[unit] = constant
        for channel, unit, weight in plan.outputs[layer]:
            feed_forward.down.weight[channel, unit] += weight
        for channel, bias in plan.biases[layer].items():
            feed_forward.down.bias[channel] = bias
    for channel, weight in answer.weights:
        model.head.weight[1, channel] = weight
    model.head_bias[0], model.head_bias[1] = 0.5, answer.bias


def _write_head(
    model: Any, plan: _Plan, layer: int, head: int, score: Linear, both: Linear, bits: dict[str, Any]
) -> None:
    attention, H, E = model.blocks[layer].attention, model.design.shape.heads, 2
    q, k, v = head * E, (H + head) * E, (2 * H + head) * E
    attention.qkv.bias[q] = 1.0
    for row, part in ((k, score), (v, score), (v + 1, both)):
        for channel, weight in part.weights:
            attention.qkv.weight[row, channel] = weight
        attention.qkv.bias[row] = part.bias
    for row, bit in ((q, bits["seen"]), (q + 1, bits["chosen"])):
        if bit is not None:
            attention.out.weight[plan.bits[bit][1], row] = 1.0
