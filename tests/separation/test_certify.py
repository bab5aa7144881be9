"""The life of a certificate: stored, resumed, confirmed, forecast."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import deepwide
from deepwide.answers import Note
from deepwide.errors import DeepwideError
from deepwide.separation import measurement
from deepwide.separation.certify import Watcher, certify, forecast, make_case, rank
from deepwide.separation.field import PRIME, SECOND_PRIME, rank_in_place
from deepwide.separation.measurement import choose_route
from deepwide.separation.network import Case
from deepwide.separation.store import Store
from deepwide.separation.upper_bounds import TooLargeError
from separation.builders import save_special_weights, save_weights

MODULE = sys.modules["deepwide.separation.certify"]  # the door has a function of this name


class Recorder(Watcher):
    def __init__(self) -> None:
        self.notes: list[Note] = []
        self.stages: list[tuple[str, float]] = []

    def note(self, note: Note) -> None:
        self.notes.append(note)

    @contextmanager
    def stage(self, name: str, seconds: float) -> Iterator[None]:
        self.stages.append((name, seconds))
        yield None


def test_rank_answers_from_python(tmp_path: Path) -> None:
    answer = deepwide.rank(depth=2, width=3)
    assert isinstance(answer, deepwide.Certificate)
    assert (answer.rank, answer.bound, answer.reached) == (49, 49, True)
    assert answer.confirmed is not None
    stored = rank(2, 4, 2, confirm=False, store=tmp_path)
    assert stored.rank == 107
    assert rank(2, 4, 2, store=tmp_path) == stored
    assert rank(weights=save_weights(tmp_path / "w.npz", 0, width=3), heads=3).rank == 43


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"depth": None, "width": 3}, "depth is missing"),
        ({"depth": 3, "width": None}, "width is missing"),
        ({"depth": 2, "width": 2, "positions": (1, 1), "partition": "AB"}, "give one of them"),
        ({"depth": "a", "width": 3}, "The depth must be a whole number, not 'a'."),
        ({"depth": 2, "width": 2.5}, "The width must be a whole number, not '2.5'."),
        ({"depth": 2, "width": 2, "heads": [1]}, "The heads must be a whole number, not a list."),
        ({"depth": 2, "width": 2, "seed": "x"}, "The seed must be a whole number, not 'x'."),
        ({"depth": 2, "width": 2, "partition": 5}, "The partition must be text such as AABB, not '5'."),
        ({"depth": 2, "width": 2, "positions": ("a", 1)}, "side A must be a whole number, not 'a'."),
        ({"depth": 2, "width": 2, "positions": (0, 1)}, "at least one position"),
        ({"depth": 2, "width": None, "weights": "nowhere.npz"}, "no file"),
    ],
)
def test_what_is_no_case_gets_a_sentence(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(DeepwideError, match=words):
        make_case(**arguments)  # type: ignore[arg-type]


def test_a_stored_certificate_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = certify(Case(2, 2), Store(tmp_path))
    monkeypatch.setattr(MODULE, "measure", lambda *_, **__: pytest.fail("measured again"))
    monkeypatch.setattr(MODULE, "confirm", lambda *_, **__: pytest.fail("confirmed again"))
    for confirm in (None, True, False):
        assert certify(Case(2, 2), Store(tmp_path), confirm) == first


def test_confirming_a_stored_certificate_measures_only_the_second_prime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    first = certify(Case(2, 2), store, confirm=False)
    assert first.confirmed is None
    assert certify(Case(2, 2), store) == first  # nobody asked
    monkeypatch.setattr(MODULE, "measure", lambda *_, **__: pytest.fail("the first measurement is there already"))
    second = certify(Case(2, 2), store, confirm=True)
    assert second.confirmed is not None
    assert second.blocks == first.blocks
    assert store.find(Case(2, 2), 1_048_573) == second


def test_what_takes_over_a_minute_is_confirmed_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MODULE.CHEAP_SECONDS == 60
    monkeypatch.setattr(MODULE, "CHEAP_SECONDS", 0.0)
    watcher = Recorder()
    assert certify(Case(2, 2), watcher=watcher).confirmed is None
    assert [note.code for note in watcher.notes] == ["not-confirmed"]
    assert watcher.notes[0].data["seconds"] > 0
    assert certify(Case(2, 2), confirm=True).confirmed is not None


def test_a_long_confirmation_leaves_the_certificate_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MODULE, "CHEAP_SECONDS", 0.0)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(MODULE, "confirm", interrupted)
    with pytest.raises(KeyboardInterrupt):
        certify(Case(2, 2), Store(tmp_path), confirm=True)
    stored = Store(tmp_path).find(Case(2, 2), 1_048_573)
    assert stored is not None
    assert stored.confirmed is None


def test_an_interrupted_measurement_resumes_with_its_finished_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deepwide.separation.store._SECONDS_BETWEEN", 0)
    store, ranked = Store(tmp_path / "c.json"), list[int]()
    honest = rank_in_place

    def interrupted(matrix: np.ndarray, *rest: object) -> int:
        if len(ranked) == 3:
            raise KeyboardInterrupt
        ranked.append(len(matrix))
        return honest(matrix, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(measurement, "rank_in_place", interrupted)
    with pytest.raises(KeyboardInterrupt):
        certify(Case(2, 3), store, confirm=False)
    assert ranked == [22, 19, 7]  # largest first
    assert len(json.loads((tmp_path / ".c.json.dgemm.part").read_text())["ranks"]) == 3
    again: list[int] = []
    monkeypatch.setattr(measurement, "rank_in_place", lambda m, *rest: again.append(len(m)) or honest(m, *rest))
    watcher = Recorder()
    assert certify(Case(2, 3), store, confirm=False, watcher=watcher).rank == 49
    assert sorted(again) == [2, 4]
    assert [(note.code, note.data["blocks"]) for note in watcher.notes] == [("resumed", 3)]
    assert [file.name for file in tmp_path.iterdir()] == ["c.json"]


def test_every_stage_is_announced_with_its_time() -> None:
    watcher = Recorder()
    certify(Case(2, 3), watcher=watcher)
    assert [name for name, _ in watcher.stages] == ["depth 2, width 3", "depth 2, width 3, again by FLINT"]
    assert all(seconds > 0 for _, seconds in watcher.stages)


def test_a_forecast_measures_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "measure", lambda *_, **__: pytest.fail("measured"))
    answer = forecast(Case(3, 4), memory=10**10)
    assert answer.largest_block == 11437
    assert answer.blocks == 14
    assert not answer.confirms
    assert answer.total_seconds == answer.seconds > 10
    assert forecast(Case(3, 4), confirm=True, memory=10**10).total_seconds > answer.total_seconds
    with pytest.raises(TooLargeError):
        forecast(Case(3, 4), memory=10**6)


def test_what_is_stored_takes_no_time(tmp_path: Path) -> None:
    store = Store(tmp_path)
    certify(Case(2, 2), store, confirm=False)
    assert forecast(Case(2, 2), store).stored
    assert forecast(Case(2, 2), store).total_seconds == 0
    again = forecast(Case(2, 2), store, confirm=True)
    assert (again.stored, again.seconds, again.confirms) == (False, 0.0, True)


def test_weights_from_a_file_are_measured_modulo_primes_that_nobody_could_know(tmp_path: Path) -> None:
    """The file is zero modulo both usual primes; 49 is its rank."""
    weights = save_special_weights(tmp_path / "w.npz")
    certificates = [rank(weights=weights), rank(weights=weights)]
    assert [certificate.rank for certificate in certificates] == [49, 49]
    primes = {c.prime for c in certificates} | {c.confirmed.prime for c in certificates if c.confirmed}
    assert len(primes) >= 3  # four draws from 38,000
    assert not primes & {PRIME, SECOND_PRIME}
    assert rank(weights=weights, prime=PRIME, confirm=False).rank == 0  # whoever asks for a prime gets it


def test_a_drawn_prime_is_taken_up_again(tmp_path: Path) -> None:
    """Stored with whatever prime it was measured; interrupted, the prime of its finished blocks."""
    weights = save_special_weights(tmp_path / "w.npz")
    store = Store(tmp_path / "ranks")
    first = rank(weights=weights, store=store, confirm=False)
    assert rank(weights=weights, store=store, confirm=False) == first
    second = rank(weights=weights, store=store, confirm=True)
    assert second.prime == first.prime
    assert second.confirmed
    case = Case(2, 3, weights=str(weights), seed=1)
    part = store.finished_blocks(choose_route(case), 999_983, False, "dgemm")
    part._saved -= 10
    part.add(2, 21)
    assert rank(weights=weights, seed=1, store=store, confirm=False).prime == 999_983
