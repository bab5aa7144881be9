"""Checking a certificate again from nothing but its seeds, by another evaluation wherever there is one.

The file may be a stranger's. Whatever it claims is compared with what is counted, drawn and measured here, and the
size is checked before anything is drawn.
"""

from pathlib import Path

from deepwide.answers import Answer
from deepwide.errors import DeepwideError, quoted
from deepwide.separation.certificates import Certificate
from deepwide.separation.certify import CHEAP_SECONDS, Watcher
from deepwide.separation.evaluate import Method, Points
from deepwide.separation.field import draw_prime
from deepwide.separation.measurement import METHODS, check_exact, check_size, choose_route, default_memory, measure
from deepwide.separation.store import read_certificate


class Verification(Answer):
    """A certificate that holds: what was measured again, and how. One that does not hold is an error."""

    file: str
    holds: bool = True
    rank: int
    prime: int
    second_prime: int | None  # measured modulo this one too
    points_only: int | None  # modulo this one only the sample points were compared
    drawn_prime: int | None  # weights from a file: modulo this one too, which nobody could know before
    method: Method
    independent: bool  # whether the certificate was made by another evaluation
    algorithm: str = "flint"

    @property
    def method_name(self) -> str:
        """The evaluation in words."""
        return METHODS[self.method]


def verify(path: str | Path, *, memory: int | None = None, watcher: Watcher | None = None) -> Verification:
    """Check a certificate again; any difference is an error.

    Modulo the second prime the ranks are measured if that takes under a minute, else only the points are compared.
    Weights from a file are always measured modulo a third one as well, drawn when it is needed: whoever wrote the file
    and the certificate may have chosen the weights to suit the other two.

    >>> verify("nowhere.json")
    Traceback (most recent call last):
    deepwide.errors.DeepwideError: There is no file nowhere.json.
    """
    path = Path(path)
    watcher = watcher or Watcher()
    certificate = read_certificate(path)
    case, prime, second = certificate.case, certificate.prime, certificate.confirmed
    made_by = choose_route(case, full_grid=certificate.full_grid)
    route = choose_route(case, full_grid=certificate.full_grid, independent=True)
    check_exact(case, prime)
    if second:
        check_exact(case, second.prime)
    memory = default_memory() if memory is None else memory
    need = check_size(route, memory, flint=True)
    _compare(path, "number of sample points", certificate.points, route.sizes)
    _compare(path, "bounds", certificate.block_bounds, route.bounds)
    certificate.check_weights()
    _compare_points(path, "hash of the sample points", certificate.points_sha256, certificate, prime)
    with watcher.stage(f"checking {path.name}", need.seconds) as progress:
        again = measure(case, prime, flint=True, route=route, memory=memory, progress=progress)
    _compare(path, "ranks", certificate.blocks, again.blocks)
    _compare(path, "total rank", certificate.rank, again.rank)
    _compare(path, "total bound", certificate.bound, again.bound)
    measured_twice = second is not None and need.seconds <= CHEAP_SECONDS
    if second:
        _compare(path, "ranks of its confirmation", second.blocks, again.blocks)
        _compare_points(path, "hash of its second sample points", second.points_sha256, certificate, second.prime)
        if measured_twice:
            once_more = measure(case, second.prime, flint=True, route=route, memory=memory)
            _compare(path, "ranks modulo its second prime", second.blocks, once_more.blocks)
    drawn = None
    if case.from_file:
        drawn = draw_prime(prime, second.prime if second else prime)
        once_more = measure(case, drawn, flint=True, route=route, memory=memory)
        _compare(path, f"ranks modulo {drawn}, drawn just now", certificate.blocks, once_more.blocks)
    return Verification(
        file=str(path),
        rank=again.rank,
        prime=prime,
        second_prime=second.prime if second and measured_twice else None,
        points_only=second.prime if second and not measured_twice else None,
        drawn_prime=drawn,
        method=route.method,
        independent=route.method != made_by.method,
    )


def _compare_points(path: Path, what: str, claimed: str, certificate: Certificate, prime: int) -> None:
    digest = Points.draw(certificate.case, max(certificate.points), prime).digest()
    _compare(path, what, claimed, digest)


def _compare(path: Path, what: str, claimed: object, measured: object) -> None:
    if claimed != measured:
        raise DeepwideError(f"{path} does not hold: its {what}: {_short(claimed)}; measured here: {_short(measured)}.")


def _short(value: object) -> str:
    if isinstance(value, tuple):
        text = ", ".join(map(str, value[:20]))
        return f"[{text[:80]}{'…' if len(text) > 80 or len(value) > 20 else ''}]"
    return str(value) if isinstance(value, str) and len(value) == 64 else quoted(value).strip("'")
