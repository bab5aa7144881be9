"""Pictures of heads show every head and every word once."""

from pathlib import Path

from deepwide.figures import head_plane, save_chart, sentence_attention, share_lines


def test_every_head_is_a_point(tmp_path: Path) -> None:
    rows = [
        {"x": 0.1 * layer, "y": 0.2 * head, "layer": layer, "head": head, "role": "next" if head else "nothing special"}
        for layer in (1, 2, 3)
        for head in (1, 2)
    ]
    save_chart(head_plane(rows, "Heads"), tmp_path / "plane.svg")
    assert (tmp_path / "plane.svg").read_text().count('aria-roledescription="point"') == 6


def test_words_keep_their_order_even_where_one_comes_twice(tmp_path: Path) -> None:
    words = ["the", "dog", "saw", "the", "cat"]
    rows = [
        {"head": "layer 1, head 2", "row": i, "looking": one, "column": j, "looked_at": two, "attention": 0.2}
        for i, one in enumerate(words)
        for j, two in enumerate(words)
    ]
    save_chart(sentence_attention(rows, "A sentence"), tmp_path / "words.svg")
    drawn = (tmp_path / "words.svg").read_text()
    places = [drawn.index(f">{number} {word}<") for number, word in enumerate(words, 1)]
    assert places == sorted(places)
    assert drawn.count('aria-roledescription="rect mark"') == 25


def test_one_line_per_kind(tmp_path: Path) -> None:
    rows = [
        {"layer": layer, "share": 0.1 * layer, "kind": kind, "panel": panel}
        for layer in (1, 2, 3)
        for kind in ("next", "previous")
        for panel in ("one", "two")
    ]
    save_chart(share_lines(rows, "Shares"), tmp_path / "lines.svg")
    assert (tmp_path / "lines.svg").read_text().count('aria-roledescription="line mark"') == 4
