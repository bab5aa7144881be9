"""A measured rank as a file that anyone can check again: what was drawn, from which seed, and the ranks.

A certificate holds no matrix. Weights and sample points come from SHAKE-256 of the seed, so they can be
drawn again; the hash of the points says that they were the same; the ranks are then measured anew, by
the Gram form layer by layer and FLINT rather than the chain and dgemm that made them.
"""

import hashlib
import json
import os
import tempfile
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from deepwide import __version__
from deepwide.errors import DeepwideError
from deepwide.separation.case import Case
from deepwide.separation.evaluate import Points
from deepwide.separation.field import check_prime
from deepwide.separation.measurement import Measurement, Progress, block_sizes, estimate, measure

FORMAT = "deepwide separation rank 1"
ALGORITHMS = ("dgemm", "flint")
_CHEAP_SECONDS = 60.0


def certificate(measurement: Measurement, confirmation: Measurement | None) -> dict[str, Any]:
    """The content of a certificate, sealed with its own hash."""
    case = asdict(measurement.case)
    body: dict[str, Any] = {
        "format": FORMAT,
        "case": case,
        "full_grid": measurement.full_grid,
        "rank": measurement.rank,
        "bound": measurement.bound,
        "blocks": list(measurement.blocks),
        "block_bounds": list(measurement.bounds),
        "prime": measurement.prime,
        "points": list(block_sizes(measurement.case, measurement.full_grid)),
        "points_sha256": measurement.points_hash,
        "algorithm": measurement.algorithm,
        "confirmed": None,
        "made_by": f"deepwide {__version__}",
        "seconds": round(measurement.seconds, 3),
    }
    if measurement.case.weights not in ("random", "identity"):
        body["weights_sha256"] = file_hash(Path(measurement.case.weights))
    if confirmation:
        body["confirmed"] = {
            "prime": confirmation.prime,
            "algorithm": confirmation.algorithm,
            "blocks": list(confirmation.blocks),
            "points_sha256": confirmation.points_hash,
            "seconds": round(confirmation.seconds, 3),
        }
    return {**body, "sha256": seal(body)}


def seal(body: dict[str, Any]) -> str:
    """The SHA-256 of the content but for the seal itself."""
    plain = {key: value for key, value in body.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(plain, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def file_hash(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write(content: dict[str, Any], path: Path) -> None:
    """Write to a temporary sibling, sync, rename: the file is whole or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w") as file:
            json.dump(content, file, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read(path: Path) -> dict[str, Any]:
    """A certificate whose seal is whole, or a sentence that says why not."""
    if not path.is_file():
        raise DeepwideError(f"There is no certificate {path}.")
    try:
        content = json.loads(path.read_text())
    except ValueError as error:
        raise DeepwideError(f"{path} is not a certificate but torn or something else: {error}.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DeepwideError(f"{path} is not a certificate of this program: its format is not '{FORMAT}'.")
    if content.get("sha256") != seal(content):
        raise DeepwideError(f"{path} was changed after it was written: its sha256 does not fit its content.")
    wrong = _wrong(content)
    if wrong:
        raise DeepwideError(f"{path} is not a valid certificate: {wrong}.")
    return content


_KINDS: dict[str, type | tuple[type, ...]] = {
    "case": dict, "full_grid": bool, "rank": int, "bound": int, "blocks": list, "block_bounds": list, "prime": int,
    "points": list, "points_sha256": str, "algorithm": str, "confirmed": (dict, type(None)), "seconds": (int, float),
}  # fmt: skip
_SECOND_KINDS = {name: _KINDS[name] for name in ("prime", "algorithm", "blocks", "points_sha256", "seconds")}


def _wrong(content: dict[str, Any]) -> str:
    """What a certificate lacks or says in the wrong way; nothing if it is well formed."""
    wrong = _ill_typed(content, _KINDS, "")
    if wrong:
        return wrong
    case_kinds = {f.name: f.type for f in fields(Case)}
    assert all(isinstance(kind, type) for kind in case_kinds.values())
    wrong = _ill_typed(content["case"], case_kinds, "case.")
    if wrong:
        return wrong
    try:
        case_of(content)
    except DeepwideError as error:
        return str(error).rstrip(".")
    if len(content["blocks"]) != len(content["block_bounds"]):
        return "'blocks' and 'block_bounds' are not equally many"
    if content["case"]["weights"] not in ("random", "identity") and not isinstance(content.get("weights_sha256"), str):
        return "'weights_sha256' is missing"
    second = content["confirmed"]
    if second is not None:
        wrong = _ill_typed(second, _SECOND_KINDS, "confirmed.")
        if wrong:
            return wrong
        if second["prime"] == content["prime"]:
            return f"it is confirmed by its own prime, {second['prime']}"
    return ""


def _ill_typed(held: dict[str, Any], kinds: dict[str, Any], where: str) -> str:
    for name, kind in kinds.items():
        if name not in held:
            return f"'{where}{name}' is missing"
        value = held[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            return f"'{where}{name}' is {_short(repr(value))}"
        if kind is list and not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in value):
            return f"'{where}{name}' does not hold whole numbers"
        if name == "algorithm" and value not in ALGORITHMS:
            return f"'{where}{name}' is {_short(repr(value))}, neither of {' and '.join(ALGORITHMS)}"
    return ""


def case_of(content: dict[str, Any]) -> Case:
    """The case a certificate is about."""
    return Case(**{f.name: content["case"][f.name] for f in fields(Case)})


def measurement_of(content: dict[str, Any]) -> Measurement:
    """The measurement a certificate was made from."""
    return Measurement(
        case_of(content), content["prime"], content["full_grid"], tuple(content["blocks"]),
        tuple(content["block_bounds"]), content["points_sha256"], content["algorithm"], content["seconds"],
    )  # fmt: skip


def check_weights(content: dict[str, Any], path: Path) -> None:
    """Stop if the weights were in a file that has changed since."""
    weights = content["case"]["weights"]
    if "weights_sha256" in content and file_hash(Path(weights)) != content["weights_sha256"]:
        raise DeepwideError(f"{weights} is not the file the certificate {path} was made from: it has changed.")


def second_is_cheap(content: dict[str, Any]) -> bool:
    """Whether `verify` measures modulo the second prime too."""
    return estimate(case_of(content), content["full_grid"], flint=True, chain=False).seconds <= _CHEAP_SECONDS


def verify(path: Path, *, memory: int | None = None, progress: Progress | None = None) -> Measurement:
    """Check a certificate again from nothing but its seeds; any difference is an error.

    Modulo the second prime the ranks are measured if that is cheap (`second_is_cheap`), else only the points checked.

    >>> verify(Path("nowhere.json"))
    Traceback (most recent call last):
    deepwide.errors.DeepwideError: There is no certificate nowhere.json.
    """
    content = read(path)
    case, prime, full_grid = case_of(content), content["prime"], content["full_grid"]
    check_weights(content, path)
    check_prime(prime)
    sizes = block_sizes(case, full_grid)
    _same(path, "number of sample points", content["points"], list(sizes))
    digest = Points.draw(case, max(sizes), prime).digest()
    _same(path, "hash of the sample points", content["points_sha256"], digest)
    again = measure(case, prime, full_grid=full_grid, flint=True, chain=False, memory=memory, progress=progress)
    _same(path, "ranks", content["blocks"], list(again.blocks))
    _same(path, "bounds", content["block_bounds"], list(again.bounds))
    _same(path, "total rank", content["rank"], again.rank)
    _same(path, "total bound", content["bound"], again.bound)
    second = content["confirmed"]
    if second:
        _same(path, "ranks of its confirmation", second["blocks"], list(again.blocks))
        check_prime(second["prime"])
        other = Points.draw(case, max(sizes), second["prime"]).digest()
        _same(path, "hash of its second sample points", second["points_sha256"], other)
        if second_is_cheap(content):
            once_more = measure(case, second["prime"], full_grid=full_grid, flint=True, chain=False, memory=memory)
            _same(path, "ranks modulo its second prime", second["blocks"], list(once_more.blocks))
    return again


def _same(path: Path, what: str, said: object, found: object) -> None:
    if said != found:
        raise DeepwideError(f"{path} does not hold: its {what}: {_short(said)}; found anew: {_short(found)}.")


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
