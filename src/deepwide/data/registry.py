"""Public corpora by name: found under $DEEPWIDE_DATA, or fetched by address and checksum if the network is allowed."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deepwide.errors import DeepwideError
from deepwide.extras import install

NETWORK = "DEEPWIDE_NETWORK"


@dataclass(frozen=True)
class PublicSet:
    """A corpus, the folder it has under $DEEPWIDE_DATA, and where its files are on the network."""

    name: str
    about: str
    licence: str
    files: Mapping[str, str]  # address: checksum of the file, as pooch writes it


_WIKITEXT = "https://raw.githubusercontent.com/pytorch/examples/main/word_language_model/data/wikitext-2"

REGISTRY: Mapping[str, PublicSet] = {
    entry.name: entry
    for entry in (
        PublicSet(
            "tinyshakespeare",
            "1.1 MB of Shakespeare's plays",
            "public domain",
            {
                "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt": (
                    "sha256:86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
                )
            },
        ),
        PublicSet(
            "wikitext-2",
            "2.4 MB of Wikipedia: WikiText-2's validation and test parts",
            "CC BY-SA",
            {
                f"{_WIKITEXT}/{part}.txt": f"sha256:{checksum}"
                for part, checksum in (
                    ("valid", "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8"),
                    ("test", "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0"),
                )
            },
        ),
        PublicSet(
            "enwik8",
            "the first 100 MB of English Wikipedia in 2006 (under $DEEPWIDE_DATA: with its markup stripped)",
            "GFDL, CC BY-SA",
            # The checksum is the unpacked file's, the one that everybody quotes.
            {"http://mattmahoney.net/dc/enwik8.zip": "unpacked md5:a1fa5ffddb56f4953e226637dabbb36a"},
        ),
        PublicSet(
            "imdb",
            "50,000 film reviews",
            "research",
            {
                "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz": (
                    "md5:7c2ac02c03563afcf9b574c7e56c153a"
                )
            },
        ),
    )
}


def cache_folder() -> Path:
    """Where downloads and tokens are stored: $DEEPWIDE_CACHE, or deepwide in the user's cache."""
    if given := os.environ.get("DEEPWIDE_CACHE"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "deepwide"


def allow_network() -> None:
    """Let this process and those that it starts fetch public corpora.

    Not a setting of a run: it decides where the text comes from, and the fingerprint says what it is.
    """
    os.environ[NETWORK] = "1"


def network_allowed() -> bool:
    """Whether something may be fetched: after `allow_network()`, or with DEEPWIDE_NETWORK=1."""
    return os.environ.get(NETWORK, "") not in ("", "0")


def find_set(name: str) -> list[Path]:
    """The files of a registered corpus."""
    entry = REGISTRY[name]
    local_data = os.environ.get("DEEPWIDE_DATA")
    if local_data and (folder := Path(local_data) / name).is_dir():
        return sorted(path for path in folder.iterdir() if path.is_file())
    home = cache_folder() / "downloads" / name
    wanted = {address: home / address.rpartition("/")[2] for address in entry.files}
    if not all(path.exists() for path in wanted.values()) and not network_allowed():
        raise DeepwideError(
            f"'{name}' is not on this machine: set DEEPWIDE_DATA to a folder that holds {name}/, or allow the network "
            f"with {NETWORK}=1.",
            remedies=("network",),
        )
    return [
        _fetch(address, checksum, path)
        for (address, checksum), path in zip(entry.files.items(), wanted.values(), strict=True)
    ]


def _fetch(address: str, checksum: str, path: Path) -> Path:
    """The file at an address, by pooch, which checks it each time it is used."""
    try:
        import pooch  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise DeepwideError(f"Public corpora are fetched with pooch: {install('train')}.") from None
    known = None if checksum.startswith("unpacked ") else checksum
    try:
        fetched = Path(pooch.retrieve(address, known_hash=known, fname=path.name, path=path.parent, progressbar=False))
    except Exception as error:  # pooch passes on whatever the network raises
        raise DeepwideError(f"{address} could not be fetched: {error}.") from None
    if known is None:
        _check_unpacked(fetched, checksum.removeprefix("unpacked md5:"))
    return fetched


def _check_unpacked(path: Path, md5: str) -> None:
    import zipfile

    digest = hashlib.md5(usedforsecurity=False)
    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    if digest.hexdigest() != md5:
        raise DeepwideError(f"{path} is not what it should be (md5 {digest.hexdigest()}, not {md5}): delete it.")
