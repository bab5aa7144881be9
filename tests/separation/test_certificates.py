"""A certificate is a typed answer and a sealed file: any change of a digit, any unknown key gets a sentence."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwide.errors import DeepwideError
from deepwide.separation.certificates import Certificate, seal
from deepwide.separation.measurement import confirm, measure
from deepwide.separation.network import Case
from deepwide.separation.store import read_certificate
from deepwide.separation.upper_bounds import upper_bounds
from separation.builders import PUBLISHED, is_one_sentence, reseal, save_special_weights, save_weights

FILES = sorted(PUBLISHED.glob("*.json"))


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    measured = measure(Case(2, 3, 3, seed=7))
    return Certificate.of(measured, confirm(measured))


@pytest.fixture
def path(certificate: Certificate, tmp_path: Path) -> Path:
    certificate.write(tmp_path / "c.json")
    return tmp_path / "c.json"


def refused(path: Path) -> str:
    with pytest.raises(DeepwideError) as stopped:
        read_certificate(path)
    assert is_one_sentence(str(stopped.value)), stopped.value
    return str(stopped.value)


def test_a_certificate_is_read_as_it_was_written(path: Path, certificate: Certificate) -> None:
    assert read_certificate(path) == certificate
    assert [file.name for file in path.parent.iterdir()] == ["c.json"]
    assert (certificate.rank, certificate.bound, certificate.reached) == (43, 43, True)


def test_it_is_frozen_and_gives_a_table_of_blocks(certificate: Certificate) -> None:
    with pytest.raises(ValueError, match="frozen"):
        certificate.rank = 44  # type: ignore[misc]
    assert [row["rank"] for row in certificate.rows()] == [1, 6, 15, 18, 3]
    assert certificate.to_polars().height == 5


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_published_files_load_with_their_seals_and_dump_to_the_same_content(file: Path) -> None:
    certificate = read_certificate(file)
    assert certificate.model_dump(mode="json") == json.loads(file.read_text())
    assert certificate.confirmed is not None
    assert certificate.confirmed.blocks == certificate.blocks
    assert certificate.rank == sum(certificate.blocks) <= certificate.bound == upper_bounds(certificate.case).total
    assert file.stem == certificate.case.name()


def test_there_are_published_files() -> None:
    assert len(FILES) > 50


def test_no_single_changed_digit_goes_unnoticed(path: Path) -> None:
    text = path.read_text()
    for place in [match.start() for match in re.finditer(r"\d", text)]:
        path.write_text(text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1 :])
        refused(path)


@pytest.mark.parametrize(
    ("keys", "value", "words"),
    [
        (["prime"], None, "prime: field required"),
        (["blocks"], "many", "blocks: "),
        (["blocks"], [1, "6"], "blocks.1: "),
        (["blocks"], [1, -6, 15, 18, 3], "blocks.1: "),
        (["blocks"], [43], "do not have the same length"),
        (["points"], [44], "do not have the same length"),
        (["full_grid"], 0, "full_grid: "),
        (["rank"], 43.0, "rank: "),
        (["rank"], True, "rank: "),
        (["rank"], float("nan"), "rank: "),
        (["case"], [], "case: "),
        (["case", "depth"], "2", "case.depth: "),
        (["case", "depth"], 2.0, "case.depth: "),
        (["case", "depth"], True, "case.depth: "),
        (["case", "depth"], -1, "must be at least 1"),
        (["case", "depth"], 10, "cannot be measured"),
        (["case", "heads"], 2, "cannot be split evenly"),
        (["case", "width"], 10**400, "at most 16384"),
        (["case", "weights"], "w.npz", "'weights_sha256' is missing"),
        (["case", "weights"], "w\0", "path of a file"),
        (["case", "colour"], 1, "case.colour: unexpected keyword argument"),
        (["colour"], 1, "there is no key 'colour'"),
        (["seconds"], "fast", "seconds: "),
        (["seconds"], float("nan"), "seconds: "),
        (["seconds"], float("inf"), "seconds: "),
        (["seconds"], -1.0, "seconds: "),
        (["algorithm"], "by hand", "algorithm: "),
        (["points_sha256"], "0", "points_sha256: "),
        (["confirmed"], True, "'confirmed' is a table of keys, not 'True'"),
        (["confirmed", "blocks"], None, "confirmed.blocks: field required"),
        (["confirmed", "algorithm"], "magic", "confirmed.algorithm: "),
        (["confirmed", "seconds"], float("nan"), "confirmed.seconds: "),
        (["confirmed", "prime"], 1_048_573, "confirmed by its own prime"),
    ],
)
def test_an_ill_formed_certificate_gets_a_sentence(path: Path, keys: list[str], value: object, words: str) -> None:
    forged = json.loads(path.read_text())
    place = forged if len(keys) == 1 else forged[keys[0]]
    place[keys[-1]] = value
    if value is None:
        del place[keys[-1]]
    reseal(path, forged)
    sentence = refused(path)
    assert "not a valid certificate: " in sentence
    assert words in sentence


def test_a_key_that_appears_twice_is_refused(path: Path) -> None:
    """A reader sees the first value, the program would take the last."""
    text = path.read_text()
    path.write_text(text.replace('"rank": 43', '"rank": 1000000,\n "rank": 43'))
    assert "'rank' appears twice" in refused(path)
    path.write_text(text.replace('"depth": 2', '"depth": 9, "depth": 2'))
    assert "'depth' appears twice" in refused(path)


@pytest.mark.parametrize("depth", [900, 100_000])
@pytest.mark.parametrize("inside", [False, True])
def test_nesting_gets_a_sentence(path: Path, depth: int, inside: bool) -> None:
    nest = "[" * depth + "]" * depth
    path.write_text(f'{{"format": "deepwide separation rank 1", "case": {nest}}}' if inside else nest)
    refused(path)


def test_torn_foreign_large_and_absent_files_get_a_sentence(path: Path) -> None:
    path.write_text(path.read_text()[:100])
    assert "not JSON" in refused(path)
    path.write_text(json.dumps({"format": "something else"}))
    assert "not a certificate of this program" in refused(path)
    with open(path, "wb") as file:
        file.truncate(1 << 30)
    assert "larger than" in refused(path)
    path.unlink()
    assert "no file" in refused(path)
    assert "not a regular file" in refused(Path("/dev/zero"))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=300)
@given(st.data())
def test_a_mutated_certificate_is_valid_or_gets_one_sentence(data: st.DataObject) -> None:
    content: dict[str, Any] = json.loads(FILES[0].read_text())
    for _ in range(data.draw(st.integers(1, 2))):
        place: Any = content
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = data.draw(st.sampled_from([*keys, "extra"] if isinstance(place, dict) else keys))
            inner = place.get(key) if isinstance(place, dict) else place[key]
            if isinstance(inner, dict | list) and inner and data.draw(st.booleans()):
                place = inner
                continue
            if isinstance(place, dict) and key in place and data.draw(st.booleans()):
                del place[key]
            else:
                place[key] = data.draw(json_values)
            break
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.json"
        try:
            reseal(path, content)
        except ValueError:  # a number that JSON cannot hold
            return
        try:
            certificate = read_certificate(path)
        except DeepwideError as error:
            assert is_one_sentence(str(error)), error  # noqa: PT017
        else:
            assert certificate.case.depth >= 1


def test_almost_surely_needs_two_large_primes_and_weights_that_nobody_chose(tmp_path: Path) -> None:
    identity = Case(2, 2, weights="identity")
    assert Certificate.of(measure(identity), confirm(measure(identity))).almost_surely_exact
    assert not Certificate.of(measure(identity)).almost_surely_exact
    small = measure(identity, 65_521)
    assert not Certificate.of(small, confirm(small)).almost_surely_exact
    own = measure(Case(2, 2, weights=str(save_weights(tmp_path / "w.npz", 0))))
    assert not Certificate.of(own, confirm(own)).almost_surely_exact


def test_weights_made_special_modulo_both_primes_are_not_called_almost_surely_exact(tmp_path: Path) -> None:
    """Multiples of both primes: rank 0 modulo each, 49 in truth; only 'at least 0' may be claimed."""
    save_special_weights(tmp_path / "w.npz")
    forged = measure(Case(2, 3, weights=str(tmp_path / "w.npz")))
    certificate = Certificate.of(forged, confirm(forged))
    assert certificate.rank == 0
    assert not certificate.almost_surely_exact
    assert measure(Case(2, 3, weights=str(tmp_path / "w.npz")), 999_983).rank == 49


def test_a_weight_file_that_changed_is_noticed(tmp_path: Path) -> None:
    path = save_weights(tmp_path / "w.npz", 0)
    certificate = Certificate.of(measure(Case(2, 2, weights=str(path))))
    certificate.check_weights()
    assert "weights_sha256" in certificate.model_dump(mode="json")
    save_weights(path, 1)
    with pytest.raises(DeepwideError, match="it has changed"):
        certificate.check_weights()


def test_the_seal_covers_everything_but_itself(certificate: Certificate) -> None:
    content = certificate.model_dump(mode="json")
    assert seal(content) == certificate.sha256 == seal({**content, "sha256": "anything"})
    assert seal({**content, "seconds": 99.0}) != certificate.sha256
