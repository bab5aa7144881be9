"""A network without a part is the one that leaves the part out, computed by hand with the same weights."""

from typing import Any

import pytest

from deepwide.model import Architecture, Transformer
from deepwide.probes import remove_parts, stream_residuals

torch = pytest.importorskip("torch")


def network(**choices: Any) -> Transformer:
    fields: dict[str, Any] = {
        "depth": 3, "width": 8, "heads": 2, "vocab": 6, "context": 6, "kind": "encoder", "norm_place": "post",
        "embedding_norm": True,
    }  # fmt: skip
    model = Transformer(Architecture.of(**(fields | choices)), seed=3).double()
    with torch.no_grad():
        for parameter in model.parameters():  # as if trained: norms with weights of their own, larger matrices
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)).double() / 4)
    return model.eval()


TOKENS = torch.tensor([[0, 1, 2, 3, 4, 5], [5, 5, 1, 0, 2, 2]])


@pytest.mark.parametrize("skips", [False, True])
@pytest.mark.parametrize("feed_forward", [False, True])
def test_what_is_left_is_computed_with_the_old_weights(skips: bool, feed_forward: bool) -> None:
    model = network()
    with torch.no_grad():
        x = model.embedding_norm(model.embedding(TOKENS) + model.positions[:6])
        for block in model.blocks:
            f = block.attention(x, None, None)
            x = block.attention_norm(f if skips else x + f)
            if not feed_forward:
                f = block.feed_forward(x)
                x = block.feed_forward_norm(f if skips else x + f)
        rest = remove_parts(model, skips=skips, feed_forward=feed_forward)
        assert rest.hidden(TOKENS).numpy() == pytest.approx(x.numpy(), abs=1e-12)


def test_the_network_itself_is_not_changed() -> None:
    model = network()
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    rest = remove_parts(model, skips=True, feed_forward=True)
    with torch.no_grad():
        for parameter in rest.parameters():
            parameter.zero_()
    assert all(torch.equal(parameter, before[name]) for name, parameter in model.named_parameters())


@pytest.mark.parametrize(
    "choices",
    [{"residual": "layerscale"}, {"norm_place": "pre"}, {"ff_width": 0}, {"norm": "none", "embedding_norm": False}],
)
def test_other_networks_lose_their_parts_too(choices: dict[str, Any]) -> None:
    model = network(**choices)
    for skips in (False, True):
        rest = remove_parts(model, skips=skips, feed_forward=True)
        assert stream_residuals(rest, TOKENS).shape == (2, 4)
        assert not any("feed_forward" in name for name, _ in rest.named_parameters())
