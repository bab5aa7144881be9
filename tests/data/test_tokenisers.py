"""Byte-pair encoding writes any text, and is the same when trained twice."""

from data.builders import DOCUMENTS
from deepwide.data.tokenisers import BytePairs, Bytes


def test_byte_pairs_write_any_text_and_are_trained_the_same_way_twice() -> None:
    texts = [text.encode() for text in DOCUMENTS]
    one, two = (BytePairs.train(texts, 300) for _ in range(2))
    assert one.to_json() == two.to_json()
    again = BytePairs.from_json(one.to_json(), 300)
    for text in [*texts, "日本語, émoji 🎉, tab\t.".encode(), b"", b"<|end|> in a text"]:
        (tokens,) = again.encode([text])
        assert tokens[-1] == 0
        assert (tokens[:-1] > 0).all()
        assert again.token_bytes()[tokens].sum() == len(text) + (2 if b"<|" in text else 0)  # its | becomes ¦
        if b"<|" not in text:
            assert again.decode(tokens.tolist()) == text
    assert sum(map(len, one.encode(texts))) < sum(map(len, Bytes().encode(texts)))
