"""The network a second time: numpy in float64, written from the papers, one position and one head at a time.

It reads the weights by name and nothing else of the model's code. `activations` is filled with what the network's
named activations should be.
"""

import math
from typing import Any

import numpy as np

from deepwide.model import Architecture

Array = Any
ACTIVATIONS: dict[str, Any] = {
    "gelu": np.vectorize(lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))), otypes=[float]),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "relu": lambda x: np.where(x > 0, x, 0.0),
    "silu": lambda x: x / (1 + np.exp(-x)),
}


class Reference:
    """A forward pass over one sequence at a time; `run` returns logits."""

    def __init__(self, design: Architecture, weights: dict[str, Any]) -> None:
        self.design, self.s = design, design.shape
        self.w = {name: np.asarray(tensor.detach().numpy(), dtype=np.float64) for name, tensor in weights.items()}
        self.activations: dict[str, Array] = {}

    def run(self, tokens: Any, source: Any = None, real: Any = None, source_real: Any = None) -> Array:
        """Logits of one sequence, with the tokens that are real marked True."""
        s = self.s
        real = np.ones(len(tokens), bool) if real is None else np.asarray(real)
        if source is not None and source_real is None:
            source_real = np.ones(len(source), bool)
        if s.head == "tokens":
            memory = None
            if s.kind == "encoder-decoder":
                memory = self.stack("encoder.", "encoder.", s.encoder_depth, source, source_real, causal=False)
            h = self.stack("", "", s.depth, tokens, real, s.kind != "encoder", memory, source_real)
            logits = self.scale_logits(h) @ self.w["embedding.weight" if s.tied else "head.weight"].T
            return self.note("logits", logits + self.w["head_bias"] if s.head_bias else logits)
        a = self.pooled("", tokens, real)
        if s.head == "pair":
            b = self.pooled("source.", source, source_real)
            features = self.note("features", np.concatenate([a, b, a * b, a - b]))
            a = self.note("hidden", np.maximum(0, self.linear("classifier.hidden", features)))
        return self.note("logits", self.linear("classifier.out", self.scale_logits(a)))

    def note(self, name: str, value: Array) -> Array:
        self.activations[name] = value
        return value

    def scale_logits(self, h: Array) -> Array:
        d = self.design
        return h if d.parametrisation == "standard" else h * d.base_width / self.s.width

    def pooled(self, prefix: str, tokens: Any, real: Array) -> Array:
        causal = self.s.kind == "decoder"
        h = self.stack(prefix, "", self.s.depth, tokens, real, causal)
        at = [t for t in range(len(tokens)) if real[t]]
        return self.note(f"{prefix}pooled", h[at[-1]] if causal else sum(h[t] for t in at) / len(at))

    def linear(self, name: str, x: Array) -> Array:
        y = x @ self.w[f"{name}.weight"].T
        return y + self.w[f"{name}.bias"] if f"{name}.bias" in self.w else y

    def norm(self, name: str, x: Array) -> Array:
        if self.s.norm == "none":
            return x
        eps, weight = self.design.norm_eps, self.w[f"{name}.weight"]
        if self.s.norm == "rmsnorm":
            return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * weight
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps) * weight + self.w[f"{name}.bias"]

    def stack(
        self,
        show: str,
        where: str,
        depth: int,
        tokens: Any,
        real: Array,
        causal: bool,
        memory: Array = None,
        source_real: Array = None,
    ) -> Array:
        s, T = self.s, len(tokens)
        x = self.note(f"{show}embedding", np.stack([self.w["embedding.weight"][t] for t in tokens]))
        if s.positions == "learned":
            first = s.extra_positions
            x = x + self.note(f"{show}positions", self.w[f"{where}positions"][first : first + T])
        if s.embedding_norm:
            x = self.note(f"{show}embedding_norm", self.norm(f"{where}embedding_norm", x))
        # A padding position sees itself, and nothing else sees it.
        allowed = np.array([[(real[j] or i == j) and (j <= i or not causal) for j in range(T)] for i in range(T)])
        for layer in range(depth):
            name, at = f"{where}blocks.{layer}", f"{show}blocks.{layer}"
            self.note(f"{at}.residual_before", x)
            x = self.sublayer("attention", name, at, x, depth, memory is not None, allowed=allowed)
            self.note(f"{at}.residual_after_attention", x)
            if memory is not None:
                seen = np.array([[bool(source_real[j]) for j in range(len(memory))] for _ in range(T)])
                x = self.sublayer("cross", name, at, x, depth, True, allowed=seen, memory=memory)
                self.note(f"{at}.residual_after_cross", x)
            if s.ff_width:
                x = self.sublayer("feed_forward", name, at, x, depth, memory is not None)
            self.note(f"{at}.residual_after", x)
        return self.note(f"{show}final_norm", self.norm(f"{where}final_norm", x)) if s.final_norm else x

    def sublayer(self, part: str, name: str, at: str, x: Array, depth: int, cross: bool, **attended: Any) -> Array:
        place = self.design.norm_place
        h = x if place == "post" else self.norm(f"{name}.{part}_norm", x)
        if place == "pre_scaled":
            h = h / math.sqrt(int(name.rpartition(".")[2]) + 1)
        self.note(f"{at}.{part}.input", h)
        if part == "feed_forward":
            f = self.feed_forward(f"{name}.{part}", f"{at}.{part}", h)
        else:
            f = self.attention(f"{name}.{part}", f"{at}.{part}", h, **attended)
        self.note(f"{at}.{part}.output", f)
        if place == "peri":
            f = self.note(f"{at}.{part}.normed_output", self.norm(f"{name}.{part}_out_norm", f))
        if self.design.parametrisation == "completep":
            f = f * self.design.base_depth / depth
        x = self.join(f"{name}.{part}_join.scale", x, f, cross)
        return self.norm(f"{name}.{part}_norm", x) if place == "post" else x

    def join(self, scale: str, x: Array, f: Array, cross: bool) -> Array:
        kind, N = self.design.residual, self.s.encoder_depth
        if kind == "deepnorm":
            M = self.s.depth
            alpha = (2 * M) ** 0.25 if not N else (3 * M) ** 0.25 if cross else 0.81 * (N**4 * M) ** (1 / 16)
            return alpha * x + f
        if kind in ("rezero", "layerscale"):
            return x + self.w[scale] * f
        return f if kind == "none" else x * self.w[scale] + f if kind.startswith("admin") else x + f

    def feed_forward(self, name: str, at: str, h: Array) -> Array:
        act, f = ACTIVATIONS[self.design.activation], self.s.ff_width
        if self.s.ff == "plain":
            post = act(self.note(f"{at}.pre", self.linear(f"{name}.up", h)))
        else:
            both = self.linear(f"{name}.gate_up", h)
            post = act(self.note(f"{at}.pre", both[:, :f])) * self.note(f"{at}.up", both[:, f:])
        return self.linear(f"{name}.down", self.note(f"{at}.post", post))

    def attention(self, name: str, at: str, h: Array, allowed: Array, memory: Array = None) -> Array:
        s, E, H, K = self.s, self.s.head_dim, self.s.heads, self.s.kv_heads
        if memory is None:
            q, k, v = np.split(self.linear(f"{name}.qkv", h), [H * E, H * E + K * E], axis=1)
        else:
            q = self.linear(f"{name}.q", h)
            k, v = np.split(self.linear(f"{name}.kv", memory), [K * E], axis=1)
        if s.qk_norm == "full":
            q, k = self.norm(f"{name}.q_norm", q), self.norm(f"{name}.k_norm", k)
        q, k, v = (np.stack([x[:, i * E : (i + 1) * E] for i in range(x.shape[1] // E)]) for x in (q, k, v))
        if s.qk_norm == "head":
            q, k = self.norm(f"{name}.q_norm", q), self.norm(f"{name}.k_norm", k)
        if s.positions == "rotary" and memory is None:
            q, k = self.turned(q), self.turned(k)
        for part, value in (("q", q), ("k", k), ("v", v)):
            self.note(f"{at}.{part}", value)
        T, S = allowed.shape
        scores, pattern, heads = np.zeros((H, T, S)), np.zeros((H, T, S)), np.zeros((H, T, E))
        scale = E**-0.5 if self.design.parametrisation == "standard" else 8 / E
        for head in range(H):
            group = head // (H // K)
            for i in range(T):
                seen = [j for j in range(S) if allowed[i, j]]
                scores[head, i] = [float(q[head, i] @ k[group, j]) for j in range(S)]
                if self.design.attention == "linear":
                    pattern[head, i, seen] = scores[head, i, seen]
                else:
                    scores[head, i] *= scale
                    if s.positions == "alibi" and memory is None:
                        scores[head, i] -= [self.slope(head) * abs(i - j) for j in range(S)]
                    weights = np.exp(scores[head, i, seen] - max(scores[head, i, seen]))
                    pattern[head, i, seen] = weights / weights.sum()
                heads[head, i] = sum(pattern[head, i, j] * v[group, j] for j in seen)
        self.note(f"{at}.scores", scores)
        self.note(f"{at}.pattern", pattern)
        self.note(f"{at}.heads", heads)
        matrix = self.w[f"{name}.out.weight"]
        each = np.stack([heads[i] @ matrix[:, i * E : (i + 1) * E].T for i in range(H)], axis=1)
        self.note(f"{at}.head_outputs", each)
        return each.sum(1) + self.w.get(f"{name}.out.bias", 0.0)

    def slope(self, head: int) -> float:
        """Press et al. 2022: a geometric sequence; where H is no power of two, every other one of the next."""
        H = self.s.heads
        power = 2 ** int(math.log2(H))
        if head < power:
            return 2.0 ** (-8 * (head + 1) / power)
        return 2.0 ** (-8 * (2 * (head - power) + 1) / (2 * power))

    def turned(self, x: Array) -> Array:
        """Su et al. 2021: the pair (i, i + E/2) as a complex number, turned by t·base^(−2i/E)."""
        half = x.shape[-1] // 2
        z = x[..., :half] + 1j * x[..., half:]
        for t in range(x.shape[-2]):
            for i in range(half):
                z[..., t, i] *= np.exp(1j * t * self.design.rotary_base ** (-2 * i / (2 * half)))
        return np.concatenate([z.real, z.imag], axis=-1)
