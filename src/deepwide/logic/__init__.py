"""Depth as logic: temporal logic, B-RASP, automata, and their compilation into networks with hard attention."""

from functools import partial
from typing import TYPE_CHECKING

from deepwide import offered

if TYPE_CHECKING:
    from deepwide.logic.analysis import Language, LookAnswer, analyse_language, save_network
    from deepwide.logic.automata import Automaton, Monoid
    from deepwide.logic.brasp import Program, accepts, parse_program
    from deepwide.logic.counting import RankAnswer, counting_rank
    from deepwide.logic.expressions import of_expression
    from deepwide.logic.games import Decision, LeastDepth, classes, decide, equivalent, least_depth
    from deepwide.logic.ltl import Formula, parse
    from deepwide.logic.network import Network, compile_program
    from deepwide.logic.stair import stair_expression, stair_formula
    from deepwide.logic.starfree import starfree_formula
    from deepwide.logic.tableau import of_formula
    from deepwide.logic.translation import to_formula, to_program
    from deepwide.logic.words import Words, all_words, holds, random_words

_HOME = {
    "Automaton": "automata",
    "Decision": "games",
    "Formula": "ltl",
    "Language": "analysis",
    "LeastDepth": "games",
    "LookAnswer": "analysis",
    "Monoid": "automata",
    "Network": "network",
    "Program": "brasp",
    "RankAnswer": "counting",
    "Words": "words",
    "accepts": "brasp",
    "all_words": "words",
    "analyse_language": "analysis",
    "classes": "games",
    "compile_program": "network",
    "counting_rank": "counting",
    "decide": "games",
    "equivalent": "games",
    "holds": "words",
    "least_depth": "games",
    "of_expression": "expressions",
    "of_formula": "tableau",
    "parse": "ltl",
    "parse_program": "brasp",
    "random_words": "words",
    "save_network": "analysis",
    "stair_expression": "stair",
    "stair_formula": "stair",
    "starfree_formula": "starfree",
    "to_formula": "translation",
    "to_program": "translation",
}
__all__ = [
    "Automaton",
    "Decision",
    "Formula",
    "Language",
    "LeastDepth",
    "LookAnswer",
    "Monoid",
    "Network",
    "Program",
    "RankAnswer",
    "Words",
    "accepts",
    "all_words",
    "analyse_language",
    "classes",
    "compile_program",
    "counting_rank",
    "decide",
    "equivalent",
    "holds",
    "least_depth",
    "of_expression",
    "of_formula",
    "parse",
    "parse_program",
    "random_words",
    "save_network",
    "stair_expression",
    "stair_formula",
    "starfree_formula",
    "to_formula",
    "to_program",
]
__getattr__ = partial(offered, __name__, _HOME)
