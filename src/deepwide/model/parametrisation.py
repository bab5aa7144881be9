"""How initial size, learning rate, decay and multipliers follow width and depth, so that one learning rate serves all.

With m_d = width / base_width and m_L = depth / base_depth, relative to `standard`:

                        standard   mup                completep (Dey et al. 2025, α = 1)
    hidden: init std    1          m_d^−½             m_d^−½
            lr          1          m_d^−1             m_d^−1            (· m_L^(α−1) = 1)
            decay       1          m_d                m_d
            Adam's ε    1          m_d^−1             m_d^−1 m_L^−1
    other:  Adam's ε    1          m_d^−1             m_d^−1 (in the blocks: · m_L^−1)
    branch  x + m·f     1          1                  m_L^−1
    logits              1          m_d^−1             m_d^−1
    scores              E^−½       E0^½ / E           E0^½ / E          (E head width, E0 = 64)

Hidden are the matrices inside blocks and the hidden layer of a head for pairs; embeddings, positions, biases, norms and
the head's last matrix are other. The depth is that of the stack, encoder or decoder, that a block belongs to. At the
base shape all three are the same network. A parameter's name decides its role; torch is not needed here.
"""

from dataclasses import dataclass

from deepwide.model.architecture import Architecture, Stack

BASE_HEAD_DIM = 64


@dataclass(frozen=True)
class Factors:
    """What one parameter's settings are multiplied by."""

    init: float = 1.0
    lr: float = 1.0
    decay: float = 1.0
    eps: float = 1.0


def factors(design: Architecture, name: str, dimensions: int) -> Factors:
    """The factors of the parameter `name` (such as blocks.0.attention.qkv.weight) with so many dimensions."""
    if design.parametrisation == "standard":
        return Factors()
    m_d, m_L = _growth(design, design.stack_of(name))
    in_block = name.startswith(("blocks.", "encoder.blocks."))
    deeper = 1 / m_L if design.parametrisation == "completep" and in_block else 1.0
    if dimensions == 2 and (in_block or name == "classifier.hidden.weight"):
        return Factors(init=m_d**-0.5, lr=1 / m_d, decay=m_d, eps=deeper / m_d)
    return Factors(eps=deeper / m_d)


def branch_multiplier(design: Architecture, stack: Stack) -> float:
    """What the output of every sublayer of a stack is multiplied by before it joins the residual stream."""
    return 1 / _growth(design, stack)[1] if design.parametrisation == "completep" else 1.0


def logits_multiplier(design: Architecture) -> float:
    """What the final activations are multiplied by before the head."""
    return 1.0 if design.parametrisation == "standard" else 1 / _growth(design, design.stack)[0]


def attention_scale(design: Architecture) -> float:
    """What scores are multiplied by before softmax."""
    E = design.shape.head_dim
    return float(E**-0.5 if design.parametrisation == "standard" else BASE_HEAD_DIM**0.5 / E)


def _growth(design: Architecture, stack: Stack) -> tuple[float, float]:
    return design.shape.width / design.base_width, stack.depth / design.base_depth
