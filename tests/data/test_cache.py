"""What is stored is hashed before it is believed, and nothing is stored where everybody may write."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from deepwide.data import cache
from deepwide.data.cache import cache_folder, check_file, check_private, close_to_others, make_private
from deepwide.errors import OutsideError


def stored(home: Path, tokens: list[int]) -> tuple[Path, str]:
    path = home / "train.bin"
    path.write_bytes(np.array(tokens, dtype="<u2").tobytes())
    return path, hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_cache_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("DEEPWIDE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert cache_folder() == tmp_path / "other" / "deepwide"


def test_what_everybody_may_write_to_is_refused_and_the_sentence_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    check_private(tmp_path, path, tmp_path / "not there")
    path.chmod(0o666)
    with pytest.raises(OutsideError, match=r"everybody may write to .*/file.*chmod o-w .*/file"):
        check_private(tmp_path, path)


def test_what_is_made_under_an_open_mask_is_private_all_the_same(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        folder = make_private(tmp_path / "new")
        (folder / "file").write_text("x")
        close_to_others(folder / "file")
    finally:
        os.umask(before)
    check_private(folder, folder / "file")
    assert make_private(folder) == folder


def test_tokens_are_compared_with_hash_number_and_vocabulary(tmp_path: Path) -> None:
    path, sha256 = stored(tmp_path, [1, 2, 299])
    check_file(path, sha256, kind="<u2", tokens=3, vocab=300)
    for wrong, tokens, vocab in (("size", 4, 300), ("vocabulary", 3, 299)):
        with pytest.raises(ValueError, match=wrong):
            check_file(path, sha256, kind="<u2", tokens=tokens, vocab=vocab)
    with pytest.raises(ValueError, match="checksum"):
        check_file(path, "0" * 64, kind="<u2", tokens=3, vocab=300)


def test_a_large_file_is_hashed_once_and_again_when_it_was_touched_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, sha256 = stored(tmp_path, [1, 2, 3])
    hashed: list[tuple[bytes, ...]] = []

    def spy(*content: bytes) -> "hashlib._Hash":
        hashed.append(content)
        return _Sha(*content)

    monkeypatch.setattr(cache, "HASHED_EACH_TIME", 2)
    monkeypatch.setattr("hashlib.sha256", spy)

    def check() -> int:
        hashed.clear()
        check_file(path, sha256, kind="<u2", tokens=3, vocab=4)
        return sum(not b for b in hashed)  # hashes that were begun empty: of the content

    assert [check(), check()] == [1, 0]
    times = path.stat()
    path.write_bytes(np.array([3, 2, 1], dtype="<u2").tobytes())
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # same size, inode and time of the last change
    with pytest.raises(ValueError, match="checksum"):
        check()


_Sha = hashlib.sha256


def test_a_note_that_a_file_was_hashed_counts_for_nothing_where_everybody_may_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, sha256 = stored(tmp_path, [1, 2, 3])
    monkeypatch.setattr(cache, "HASHED_EACH_TIME", 2)
    check_file(path, sha256, kind="<u2", tokens=3, vocab=4)
    (cache_folder() / "hashed").chmod(0o777)
    with pytest.raises(OutsideError, match="everybody may write"):
        check_file(path, sha256, kind="<u2", tokens=3, vocab=4)
