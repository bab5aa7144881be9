"""Temporal logic to B-RASP and back, with the depth of the result known beforehand.

To a program, depth for depth, strict operators first (and with ≤, ≥ for the others):

    f S< g  =  rightmost[j<i, !f | g] g : 0          P< g  =  rightmost[j<i, g] 1 : 0
    Y g     =  rightmost[j<i, 1] g : 0               H< g  =  rightmost[j<i, !g] 0 : 1

and until, next, eventually and globally as their mirrors, with leftmost and j>i.

To a formula, for the attention that chooses the position nearest to i:

    rightmost[j<i, S] V : D  =  (!S S< (S & V)) | (!P< S & D)                     one level
    leftmost[j<i, S] V : D   =  P<(S & V & !P< S) | (!P< S & D)                   two levels
    rightmost[none, S] V : D =  once or later (S & V & !F> S), else D             two levels

and their mirrors. A program of depth d gives a formula of depth at most 2d, and of depth d if all its attention takes
the nearest position.
"""

from collections import Counter

from deepwide.logic.brasp import (
    ONE,
    ZERO,
    Attention,
    Boolean,
    Definition,
    Mask,
    Program,
    Side,
    combine,
    is_letter,
    named,
)
from deepwide.logic.ltl import (
    BINARY,
    FALSE,
    PAST,
    TEMPORAL,
    TRUE,
    Formula,
    Place,
    conjunction,
    disjunction,
    negation,
    operate,
    subformulas,
    temporal,
)


def to_program(f: Formula, at: Place | None = None) -> Program:
    """A program for a formula, of the same depth; Boolean parts that are used twice have a line of their own."""
    order = subformulas(f)
    uses = Counter(arg for part in order for arg in part.args)
    values: dict[Formula, Boolean] = {}
    definitions: list[Definition] = []

    def define(rule: Boolean | Attention) -> Boolean:
        definitions.append(Definition(f"P{len(definitions) + 1}", rule))
        return named(definitions[-1].name)

    for part in order:
        args = [values[arg] for arg in part.args]
        if part.op in TEMPORAL:
            values[part] = define(_attention(part.op, args))
        elif part.op in ("true", "false"):
            values[part] = ONE if part.op == "true" else ZERO
        elif not args:
            values[part] = named(f"Q_{part.op}")
        else:
            value = combine(part.op, args)
            shared = uses[part] > 1 and part.op != "!"
            values[part] = define(value) if shared else value
    if not definitions or values[f] != named(definitions[-1].name):
        define(values[f])
    return Program(tuple(definitions), at or f.reads_at)


def _attention(op: str, args: list[Boolean]) -> Attention:
    """An operator as attention to the nearest position where it is decided."""
    side: Side = "rightmost" if op in PAST else "leftmost"
    strict = op[0] in "XY" or op[1:] != ""
    masks: dict[tuple[bool, bool], Mask] = {
        (True, True): "j<i",
        (True, False): "j<=i",
        (False, True): "j>i",
        (False, False): "j>=i",
    }
    mask = masks[(op in PAST, strict)]
    g = args[-1].at("j")
    if op in BINARY:
        return Attention(side, mask, combine("|", [combine("!", [args[0].at("j")]), g]), g)
    if op in ("X", "Y"):
        return Attention(side, mask, ONE, g)
    if op[0] in "PF":
        return Attention(side, mask, g, ONE)
    return Attention(side, mask, combine("!", [g]), ZERO, ONE)


def to_formula(program: Program) -> Formula:
    """A formula for a program; `formula_depth` says how deep it is."""
    values: dict[str, Formula] = {}

    def value(part: Boolean) -> Formula:
        return part.fold(lambda leaf: _vector(leaf.name, values), FALSE, TRUE, operate)

    for each in program.simple.definitions:
        rule = each.rule
        if isinstance(rule, Attention):
            values[each.name] = _formula(rule.side, rule.mask, *map(value, (rule.score, rule.value, rule.default)))
        else:
            values[each.name] = value(rule)
    return values[program.definitions[-1].name]


def formula_depth(program: Program) -> int:
    """At most how deep `to_formula` is: one level per attention to the nearest position, two per other attention."""
    depths: dict[str, int] = {}
    for each in program.definitions:
        inner = max((depths.get(name, 0) for name in each.uses), default=0)
        rule = each.rule
        depths[each.name] = inner + (
            0 if not isinstance(rule, Attention) else 1 if _nearest(rule.side, rule.mask) else 2
        )
    return depths[program.definitions[-1].name]


def _vector(name: str, values: dict[str, Formula]) -> Formula:
    return Formula.of(name[2:]) if is_letter(name) else values[name]


def _nearest(side: str, mask: str) -> bool:
    return mask != "none" and (side == "rightmost") == mask.startswith("j<")


def _formula(side: str, mask: str, score: Formula, value: Formula, default: Formula) -> Formula:
    both = conjunction(score, value)
    if mask == "none":
        # The chosen position is the one beyond which, on the side that wins, there is no score.
        beyond = temporal("F>" if side == "rightmost" else "P<", score)
        chosen = conjunction(both, negation(beyond))
        anywhere = disjunction(temporal("P", chosen), temporal("F>", chosen))
        none = negation(disjunction(temporal("P", score), temporal("F>", score)))
        return disjunction(anywhere, conjunction(none, default))
    past, strict = mask.startswith("j<"), not mask.endswith("=i")
    since, once, further = ("S", "P", "P<") if past else ("U", "F", "F>")
    if strict:
        since, once = {"S": "S<", "U": "U>"}[since], {"P": "P<", "F": "F>"}[once]
    none = negation(temporal(once, score))
    if _nearest(side, mask) and score is TRUE:
        chosen = temporal("Y" if past else "X", value) if strict else value
    elif _nearest(side, mask):
        chosen = temporal(since, negation(score), both)
    else:
        chosen = temporal(once, conjunction(both, negation(temporal(further, score))))
    return disjunction(chosen, conjunction(none, default))
