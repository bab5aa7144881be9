"""Damaged and hostile inputs of every format that we read: `python -m benchmarks.fuzz`.

Valid examples of each format are made here, damaged by the seeded ways of mutators.py, and given to the commands and
functions that read them. Right is an answer or one sentence (DeepwideError; exit code 0, 1 or 2). Wrong is any other
exception, more than ten seconds of CPU (or a minute of time) for one input, a peak above 1 GB of memory, an escape
character that reaches the terminal, or a script of the input's in a page. Each format runs in processes of its own. An
input is a function of the seed, the format and its number: `--format law --first 123 --count 1` gives that one again.
"""

import argparse
import contextlib
import gc
import gzip
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from benchmarks.mutators import damage_any, damage_folder
from deepwide.errors import DeepwideError

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "results" / "reliability" / "fuzz.json"
LONGEST_CPU, LONGEST_SECONDS, MOST_BYTES = 10.0, 60.0, 10**9
AT_ONCE = 250  # inputs per process
EVIL = "<script>alert(1)"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class TooLong(BaseException):
    """One input took longer than it may; nothing of ours may catch this."""


class Wrong(Exception):  # noqa: N818
    """An answer that no input may get."""


class Format(NamedTuple):
    """What makes valid examples, files or folders, and what reads a damaged one."""

    examples: Callable[[Path], list[Path]]
    ask: Callable[[Path, random.Random], None]
    share: float  # of the inputs
    damage: bool = True


def call(*words: str) -> None:
    """A command in this process; refuses what no input may bring about."""
    from deepwide.cli import main

    out, err = io.StringIO(), io.StringIO()
    code: Any = 0
    argv = mock.patch.object(sys, "argv", ["deepwide", *words])
    with argv, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            code = stop.code
    gc.enable()
    if code not in (0, 1, 2):
        raise Wrong(f"exit code {code}")
    if code == 2 and len(err.getvalue().strip().splitlines()) != 1:
        raise Wrong(f"not one sentence: {err.getvalue()[:300]!r}")
    if found := CONTROL.search(out.getvalue() + err.getvalue()):
        raise Wrong(f"{found[0]!r} reaches the terminal")


def write(path: Path, content: bytes | str) -> Path:
    """An example."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# --- laws, configs, plans ---


def laws(home: Path) -> list[Path]:
    from deepwide.laws import published_laws, save_law

    saved = [save_law(law, home / f"{name}.json") for name, law in published_laws().items()]
    draws = [[1.0, 0.2, 0.0, 0.2, 0.05, 0.0, 0.0]] * 100
    fitted: dict[str, Any] = {"kind": "joint", "name": "own", "centre_params": 1e6, "soft": 1.0, "relax": 3.0}
    fitted |= {"sizes": [1e5, 1e7], "draws": draws, "fitted_block_params": [1e5, 1e7]}
    bowl = {"curvature": 0.02, "error": 0.001, "x_range": [-1, 1], "covariance": None}
    ridge: dict[str, Any] = {"kind": "ridge", "name": "mine", "base_a": None, "base_b": None, "shift": 1.0}
    ridge |= {"centre_params": 1e6, "drift": 0.2, "covariance": [[0.01, 0.0], [0.0, 0.001]], "bowl": bowl}
    for law in (fitted, ridge):
        document = {"format": "deepwide-law-1", "law": law}
        saved.append(write(home / f"{law['name']}.json", json.dumps(document)))
    return saved


def ask_law(path: Path, draw: random.Random) -> None:
    law = ("--law", str(path))
    which = draw.randrange(8)
    if which == 0:
        page = path.with_suffix(".html")
        call("page", "--out", str(page), *law)
        _check_page(page)
    elif which == 1:
        call("audit", "gpt2", "llama-3-8b", *law)
    elif which == 2:
        call("plan", "1e20", "--flops", *law, "--json")
    elif which == 3:
        call("plan", "3e8", *law, "--plot", str(path.with_suffix(".vl.json")))
    else:
        call("plan", draw.choice(("1.3B", "20k", "300M", "1e12")), *law)


def _check_page(page: Path) -> None:
    if page.exists() and EVIL in page.read_text(encoding="utf-8"):
        raise Wrong("a script of the input's is in the page")
    page.unlink(missing_ok=True)


def compute_laws(home: Path) -> list[Path]:
    law = {"citation": "me", "E": 1.8, "A": 482.0, "B": 2085.4, "alpha": 0.35, "beta": 0.37}
    return [write(home / "law.json", json.dumps({"format": "deepwide-compute-law-1", "law": law}))]


def ask_compute_law(path: Path, draw: random.Random) -> None:
    call("plan", draw.choice(("1e21", "1e17", "1e26")), "--flops", "--compute", str(path))


def configs(home: Path) -> list[Path]:
    saved = []
    for family in ("gpt2", "llama", "qwen2", "gemma2", "mixtral", "bert", "t5", "deepseek_v3"):
        path = home / family / "config.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(Wrong):
            call("plan", "100M", "--family", family, "--save", str(path))
        if path.exists():
            saved.append(path)
    more: dict[str, Any] = {"model_type": "deepseek_v3", "hidden_size": 128, "num_hidden_layers": 4, "vocab_size": 1000}
    more |= {"num_attention_heads": 4, "q_lora_rank": 32, "kv_lora_rank": 16, "qk_rope_head_dim": 8}
    more |= {"qk_nope_head_dim": 16, "v_head_dim": 16, "intermediate_size": 256, "moe_intermediate_size": 64}
    more |= {"n_routed_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 1, "first_k_dense_replace": 1}
    return [*saved, write(home / "deepseek" / "config.json", json.dumps(more))]


def ask_config(path: Path, draw: random.Random) -> None:
    which = draw.randrange(20)
    if which < 5:
        call("audit", str(path))
    elif which < 10:
        call("count", str(path), "--json")
    elif which == 10:
        call("report", str(path), "--out", str(path.with_suffix(".html")))
        _check_page(path.with_suffix(".html"))
    else:
        call("count", str(path))


# --- sweeps and runs ---

TOY = """name = "toys"
seeds = [0, 1]

[run]
trainer = "toy"
steps = 6
checkpoint_every = 2

[grid]
depth = [1, 2]
width = [2, 4]
"""


def specs(home: Path) -> list[Path]:
    corpus = home / "corpus.txt"
    write(corpus, "\n\n".join(f"{i} words and words " * 300 for i in range(9)))
    examples = [write(home / "toy.toml", TOY)]
    for name in ("first", "grid", "iso-flops", "iso-params"):
        text = (ROOT / "sweeps" / f"{name}.toml").read_text(encoding="utf-8")
        text = re.sub(r'(data\.source|source) = "[^"]*"', f'\\1 = "{corpus}"', text)
        examples.append(write(home / f"{name}.toml", text))
    return examples


def ask_spec(path: Path, draw: random.Random) -> None:
    with mock.patch("deepwide.sweeping.state._speeds", lambda widths: dict.fromkeys(widths, 1e9)):
        which = draw.randrange(4)
        if which == 0:
            call("sweep", "status", str(path), "--runs", str(path.parent / "none"))
        elif which == 1:
            call("report", str(path), "--out", str(path.with_suffix(".md")), "--runs", str(path.parent / "none"))
        else:
            call("sweep", "plan", str(path), *(("--json",) if which == 2 else ()))


def run_folders(home: Path) -> list[Path]:
    """A folder of runs of the sweep above: finished, interrupted, waiting and diverged."""
    from deepwide.run import RunFolder
    from deepwide.sweeping import cells_of, make_spec, work

    runs = home / "runs"
    cells = cells_of(make_spec(_toys()))
    for number, cell in enumerate(cells):
        folder = cell.folder(runs)
        if number < 5:
            assert work([folder.path], owner="fuzz") == 0
        elif number < 7:
            with RunFolder.open(folder.path).lease("fuzz") as writer:
                import numpy as np

                writer.append({"step": 1, "loss": 1.0})
                weights = np.zeros((cell.config["width"],) * 2)
                writer.checkpoint(1, {"weights": weights, "momentum": weights}, {"loss": 1.0})
    return [runs]


def _toys() -> dict[str, Any]:
    import tomllib

    return tomllib.loads(TOY)


def ask_runs(path: Path, draw: random.Random) -> None:
    from deepwide.run import run_folders as folders_in
    from deepwide.sweeping import Exit, work

    spec = write(path.parent / "toys.toml", TOY)
    which = draw.randrange(8)
    with mock.patch("deepwide.sweeping.state._speeds", lambda widths: dict.fromkeys(widths, 1e9)):
        if which == 0:
            call("sweep", "verify", str(path))
        elif which == 1:
            call("sweep", "export", str(spec), "--runs", str(path), *(("--curves",) if draw.random() < 0.5 else ()))
        elif which == 2:
            call("sweep", "retry", str(spec), "--failed", "--diverged", "--runs", str(path))
        elif which == 3:
            call("report", str(path), "--out", str(path.parent / "report.html"))
            _check_page(path.parent / "report.html")
        elif which == 4:
            call("fit", str(path), "--kind", "ridge", "--bootstrap", "0")
        elif which == 5:
            with contextlib.redirect_stderr(io.StringIO()):
                for folder in folders_in(path)[:8]:
                    code = work([folder], owner="fuzz", seconds=5.0)
                    if code not in tuple(Exit):
                        raise Wrong(f"a worker ended with {code}")
        else:
            call("sweep", "status", str(spec), "--runs", str(path), *(("--json",) if which == 6 else ()))


# --- tables ---


def tables(home: Path) -> list[Path]:
    import polars

    rows = [
        {"depth": depth, "width": width, "loss": 3 + 100 / (12 * depth * width**2) ** 0.5 + 0.01 * seed, "seed": seed,
         "tokens": 1e6, "status": "done"}
        for depth in (1, 2, 4) for width in (8, 16, 32, 64) for seed in (0, 1)
    ]  # fmt: skip
    frame = polars.DataFrame(rows)
    csv = frame.write_csv().encode()
    lines = "\n".join(json.dumps(row) for row in rows).encode()
    packed = io.BytesIO()
    frame.write_parquet(packed)
    contents = {
        "a.csv": csv, "a.tsv": csv.replace(b",", b"\t"), "a.jsonl": lines, "a.json": json.dumps(rows).encode(),
        "a.csv.gz": gzip.compress(csv), "a.parquet": packed.getvalue(),
    }  # fmt: skip
    return [write(home / name, content) for name, content in contents.items()]


def ask_table(path: Path, draw: random.Random) -> None:
    from deepwide.fitting import fit_ridge, fit_surface, fit_transition, read_runs

    which = draw.randrange(12)
    if which == 0:
        call("fit", str(path), "--kind", "ridge", "--bootstrap", "0")
        return
    runs = read_runs(path)
    if which < 3:
        fit_ridge(runs, bootstrap=0)
    elif which == 3:
        fit_transition(runs, bootstrap=0)
    elif which == 4:
        fit_surface(runs, bootstrap=0)


# --- data, tokens, weights ---


def data(home: Path) -> list[Path]:
    import polars

    texts = [f"Document {i}: " + "words and words " * (i % 7) for i in range(30)]
    rows = "".join(json.dumps({"text": text, "n": i}) + "\n" for i, text in enumerate(texts)).encode()
    plain = "\n\n".join(texts).encode()
    parquet, packed = io.BytesIO(), io.BytesIO()
    polars.DataFrame({"text": texts}).write_parquet(parquet)
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for i, text in enumerate(texts):
            archive.writestr(f"{i}.txt", text)
    contents = {
        "a.jsonl": rows, "a.jsonl.gz": gzip.compress(rows), "a.txt": plain, "a.txt.gz": gzip.compress(plain),
        "a.parquet": parquet.getvalue(), "a.zip": packed.getvalue(),
    }  # fmt: skip
    for kind in ("", "gz", "bz2", "xz"):
        tar = io.BytesIO()
        with tarfile.open(fileobj=tar, mode=f"w:{kind}", format=tarfile.PAX_FORMAT) as into:  # type: ignore[call-overload]
            for i, text in enumerate(texts):
                member = tarfile.TarInfo(f"{i}.txt" if i else "long" * 60)
                member.size = len(text)
                into.addfile(member, io.BytesIO(text.encode()))
        contents[f"a.tar.{kind}".rstrip(".")] = tar.getvalue()
    return [write(home / name, content) for name, content in contents.items()]


def ask_data(path: Path, draw: random.Random) -> None:
    from deepwide.data import DataConfig, fingerprint
    from deepwide.data.sources import documents

    config = DataConfig(source=str(path))
    if draw.random() < 0.1:
        fingerprint(config)
    for document in documents(config):
        assert isinstance(document, bytes)


def token_caches(home: Path) -> list[Path]:
    from deepwide.data import DataConfig, prepare

    text = home / "text"
    for i in range(12):
        write(text / f"{i}.txt", f"Document {i} " * 30)
    cache = home / "cache"
    with mock.patch.dict(os.environ, {"DEEPWIDE_CACHE": str(cache)}):
        prepare(DataConfig(source=str(text)))
        prepare(DataConfig(source=str(text), tokeniser="bpe", vocab=280))
    return [cache]


def ask_token_cache(path: Path, draw: random.Random) -> None:
    from deepwide.data import DataConfig, corpus, prepare

    text = path.parent.parent / "examples" / "tokens" / "text"
    kind: dict[str, Any] = {"tokeniser": "bpe", "vocab": 280} if draw.random() < 0.5 else {}
    config = DataConfig(source=str(text), **kind)
    corpus._fingerprint.cache_clear()
    with mock.patch.dict(os.environ, {"DEEPWIDE_CACHE": str(path)}):
        made = prepare(config, next((p.name for p in (path / "tokens").glob("*")), None))
        assert int(made.train.max()) < made.vocab


def weights(home: Path) -> list[Path]:
    import numpy as np
    from safetensors.numpy import save_file

    draw = np.random.default_rng(0)
    names = ("query", "key", "value", "output")
    arrays = {f"{layer}.{name}": draw.normal(size=(4, 4)) for layer in range(2) for name in names}
    np.savez(home / "plain.npz", **arrays)  # type: ignore[arg-type]
    np.savez_compressed(home / "packed.npz", **arrays)  # type: ignore[arg-type]
    save_file(arrays, home / "net.safetensors")
    return [home / "plain.npz", home / "packed.npz", home / "net.safetensors"]


def ask_weights(path: Path, draw: random.Random) -> None:
    from deepwide.separation.weights import file_shape, load_network

    if draw.random() < 0.3:
        file_shape(path)
    load_network(path, 1, 1_000_003)


def certificates(home: Path) -> list[Path]:
    made = sorted((ROOT / "results" / "separation" / "ranks").glob("*.json"), key=lambda path: path.stat().st_size)
    small = [path for path in made if re.search(r"L[12]-d[23]-", path.name)][:6] or made[:3]
    return [write(home / path.name, path.read_bytes()) for path in small]


def ask_certificate(path: Path, draw: random.Random) -> None:
    """Sealed again in half of the cases: the seal is a plain hash, so anybody can."""
    from deepwide.separation.certificates import seal

    if draw.random() < 0.5:
        with contextlib.suppress(Exception):
            document = json.loads(path.read_bytes())
            path.write_text(json.dumps(document | {"sha256": seal(document)}))
    call("rank", "verify", str(path), "--memory", "300MB", *(("--json",) if draw.random() < 0.3 else ()))


# --- studies, saved answers ---


def studies(home: Path) -> list[Path]:
    copies = []
    for name in ("hops-cpu", "blocks-cpu", "deep-init-cpu"):
        source = ROOT / "results" / "studies" / name
        copies.append(Path(shutil.copytree(source, home / name, ignore=shutil.ignore_patterns("runs", "*.svg"))))
    return copies


def ask_study(path: Path, draw: random.Random) -> None:
    if draw.random() < 0.6:
        call("report", str(path), "--out", str(path.parent / "report.html"))
        _check_page(path.parent / "report.html")
        return
    name = path.name.removesuffix("-cpu")
    call("study", "run", name, "--out", str(path), "--dry-run", *(("--json",) if draw.random() < 0.5 else ()))


def answers(home: Path) -> list[Path]:
    """The JSON of a plan, audits, a fit, a sweep's state: what a report and a page are made of."""
    from deepwide import audit, plan
    from deepwide.fitting import fit_ridge, fit_transition, read_runs
    from deepwide.sweeping import sweep_state

    made: dict[str, Any] = {"plan": plan("100M").model_dump(mode="json")}
    made["audits"] = [audit(name).model_dump(mode="json") for name in ("gpt2", "llama-3-8b")]
    with mock.patch("deepwide.sweeping.state._speeds", lambda widths: dict.fromkeys(widths, 1e9)):
        made["state"] = sweep_state(_toys(), home / "none").model_dump(mode="json")
    saved = [write(home / f"{name}.json", json.dumps(document)) for name, document in made.items()]
    table = ROOT / "results" / "fit" / "depth-width-cpu.csv"
    for fit in (fit_ridge(read_runs(table), bootstrap=20), fit_transition(read_runs(table), bootstrap=20)):
        path = home / f"{fit.kind}.json"
        fit.save(path)
        saved.append(path)
    return saved


def ask_answer(path: Path, draw: random.Random) -> None:
    suffix = draw.choice((".html", ".md"))
    call("report", str(path), "--out", str(path.with_suffix(suffix)))
    if suffix == ".html":
        _check_page(path.with_suffix(suffix))


# --- files that unpack to far more than they are ---

MUCH = 1 << 30


def bombs(home: Path) -> list[Path]:
    """A few megabytes that want gigabytes, as archives, rows, headers, tables and weights."""
    import numpy as np

    zeros = bytes(1 << 20)
    made = [home / name for name in ("zeros.txt.gz", "row.jsonl.gz", "zeros.csv.gz")]
    for path, start in zip(made, (b"", b'{"text": "', b"depth,width,loss\n1,2,"), strict=True):
        with gzip.open(path, "wb", compresslevel=1) as file:
            file.write(start)
            for _ in range(MUCH >> 20):
                file.write(zeros)
    with gzip.open(home / "lists.jsonl.gz", "wb", compresslevel=1) as file:
        file.write(b"[" + b"[]," * (5 << 20) + b"[]]\n")
    with zipfile.ZipFile(home / "zeros.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number in range(MUCH >> 20):
            archive.writestr(f"{number}.txt", zeros)
    with gzip.open(home / "header.tar.gz", "wb", compresslevel=1) as file:
        member = tarfile.TarInfo("long")
        member.type, member.size = tarfile.XHDTYPE, MUCH
        file.write(member.tobuf())
        for _ in range(MUCH >> 20):
            file.write(zeros)
    with zipfile.ZipFile(home / "weights.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        head = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            head, {"descr": "<f8", "fortran_order": False, "shape": (MUCH >> 12, 1 << 9)}
        )
        with archive.open("0.query.npy", "w") as member_file:
            member_file.write(head.getvalue())
            for _ in range(MUCH >> 20):
                member_file.write(zeros)
    names = ("lists.jsonl.gz", "zeros.zip", "header.tar.gz", "weights.npz")
    return [*made, *(home / name for name in names)]


def ask_bomb(path: Path, draw: random.Random) -> None:
    if path.suffix == ".npz":
        ask_weights(path, draw)
    elif ".csv" in path.name:
        from deepwide.fitting import read_runs

        read_runs(path)
    else:
        ask_data(path, draw)


FORMATS = {
    "law": Format(laws, ask_law, 3),
    "compute law": Format(compute_laws, ask_compute_law, 2),
    "config": Format(configs, ask_config, 2),
    "spec": Format(specs, ask_spec, 2),
    "runs": Format(run_folders, ask_runs, 2),
    "table": Format(tables, ask_table, 5),
    "data": Format(data, ask_data, 8),
    "tokens": Format(token_caches, ask_token_cache, 4),
    "weights": Format(weights, ask_weights, 4),
    "certificate": Format(certificates, ask_certificate, 2),
    "study": Format(studies, ask_study, 0.5),
    "answer": Format(answers, ask_answer, 0.3),
    "bomb": Format(bombs, ask_bomb, 0.01, damage=False),
}


@contextlib.contextmanager
def in_time() -> Iterator[None]:
    """Raise TooLong in the block when it takes too long: of CPU time, so that a busy machine does not count."""

    def ring(*_: object) -> None:
        raise TooLong

    limits = {(signal.SIGPROF, signal.ITIMER_PROF): LONGEST_CPU, (signal.SIGALRM, signal.ITIMER_REAL): LONGEST_SECONDS}
    for (number, timer), seconds in limits.items():
        signal.signal(number, ring)
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for _, timer in limits:
            signal.setitimer(timer, 0)


def _peak_bytes() -> int:
    """The most memory this program has held; getrusage would count the process that it was forked from."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return next(1024 * int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))


def fuzz(name: str, first: int, count: int, seed: int, home: Path, keep: Path | None = None) -> dict[str, Any]:
    """So many inputs of one format; what was wrong, and the peak of memory."""
    made = FORMATS[name]
    home.mkdir(parents=True, exist_ok=True)
    (home / "examples" / name).mkdir(parents=True, exist_ok=True)
    examples = made.examples(home / "examples" / name)
    wrong: list[dict[str, Any]] = []
    longest, began = 0.0, time.monotonic()
    for number in range(first, first + count):
        draw = random.Random(f"{seed} {name} {number}")
        example = draw.choice(examples) if made.damage else examples[number % len(examples)]
        here = home / "now"
        shutil.rmtree(here, ignore_errors=True)
        path = here / example.name
        here.mkdir(parents=True)
        if example.is_dir():
            shutil.copytree(example, path, symlinks=True)
            damage_folder(path, draw, examples)
        else:
            content = example.read_bytes()
            path.write_bytes(damage_any(example.name)(content, draw) if made.damage else content)
        start = time.process_time()
        try:
            with in_time():
                made.ask(path, draw)
        except DeepwideError:
            pass
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a panic of Rust and TooLong are no Exceptions
            last = traceback.extract_tb(error.__traceback__)[-1]
            ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "deepwide" in frame.filename]
            where = ours[-1] if ours else last
            place = f"{Path(where.filename).name}:{where.lineno}"
            what = f"{type(error).__name__}: {str(error)[:200]}"
            wrong.append({"number": number, "example": example.name, "what": what, "where": place})
            if keep is not None:
                shutil.copytree(here, keep / f"{name}-{number}", dirs_exist_ok=True, symlinks=True)
        longest = max(longest, time.process_time() - start)
    return {
        "inputs": count,
        "wrong": wrong,
        "longest_cpu_seconds": round(longest, 2),
        "seconds": round(time.monotonic() - began, 1),
        "peak_bytes": _peak_bytes(),
    }


def fuzz_all(
    count: int,
    seed: int,
    only: Sequence[str],
    keep: Path | None = None,
    first: int = 0,
    out: Path | None = None,
    resume: bool = False,
    seconds: float = float("inf"),
) -> dict[str, Any]:
    """About so many inputs over the formats, in processes of at most 250 each; what is known is written after each."""
    shares = {name: FORMATS[name].share for name in only}
    of_all = sum(shares.values())
    rows = _right_before(out, seed) if resume and out else {}
    deadline = time.monotonic() + seconds
    for name, share in shares.items():
        number = max(1 if FORMATS[name].damage else 7, round(count * share / of_all))
        while (done := rows.get(name, {}).get("inputs", 0)) < number and time.monotonic() < deadline:
            rows[name] = _more(
                rows.get(name), _in_a_process(name, first + done, min(AT_ONCE, number - done), seed, keep)
            )
            wrong = len(rows[name]["wrong"])
            print(f"{name}: {rows[name]['inputs']} of {number} inputs, {wrong} wrong", file=sys.stderr, flush=True)
            if out:
                out.parent.mkdir(parents=True, exist_ok=True)
                out.write_text(json.dumps(summary(rows, seed), indent=1) + "\n", encoding="utf-8")
    return summary(rows, seed)


def _in_a_process(name: str, first: int, count: int, seed: int, keep: Path | None) -> dict[str, Any]:
    words = ["--format", name, "--count", str(count), "--seed", str(seed), "--first", str(first), "--child"]
    words += ["--keep", str(keep)] if keep else []
    with tempfile.TemporaryDirectory(prefix="deepwide-fuzz-", dir=_quick()) as home:
        environment = os.environ | {"DEEPWIDE_CACHE": f"{home}/cache", "TMPDIR": home, "OMP_NUM_THREADS": "1"}
        environment |= {"OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        command = [sys.executable, "-m", "benchmarks.fuzz", *words, "--home", home]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    try:
        row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        died = f"the process ended with {done.returncode}: {done.stderr[-500:]}"
        row = {"inputs": count, "wrong": [{"number": -1, "what": died}], "peak_bytes": 0}
    return row


def _more(before: dict[str, Any] | None, row: dict[str, Any]) -> dict[str, Any]:
    """Two parts of one format as one."""
    if before is None:
        return row
    both = {name: before[name] + row[name] for name in ("inputs", "wrong")}
    both["seconds"] = round(before.get("seconds", 0.0) + row.get("seconds", 0.0), 1)
    return both | {name: max(before.get(name, 0), row.get(name, 0)) for name in ("longest_cpu_seconds", "peak_bytes")}


def _right_before(out: Path, seed: int) -> dict[str, Any]:
    """The formats of which a result file knows nothing wrong: what was wrong is tried again from its first input."""
    before: dict[str, Any] = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
    if before.get("seed") != seed:
        return {}
    formats = before["formats"].items()
    return {name: row for name, row in formats if not row["wrong"] and row["peak_bytes"] <= MOST_BYTES}


def summary(rows: dict[str, Any], seed: int) -> dict[str, Any]:
    """What was tried, and how much of it was wrong in which way."""
    return {
        "command": "python -m benchmarks.fuzz",
        "seed": seed,
        "inputs": sum(row["inputs"] for row in rows.values()),
        "uncaught": sum("TooLong" not in each["what"] for row in rows.values() for each in row["wrong"]),
        "longer_than_10_s": sum("TooLong" in each["what"] for row in rows.values() for each in row["wrong"]),
        "formats_above_1_GB": sum(row["peak_bytes"] > MOST_BYTES for row in rows.values()),
        "formats": rows,
    }


def _quick() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def main(words: Sequence[str] | None = None) -> None:
    """Run, print, save; 1 where anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--format", action="append", choices=tuple(FORMATS))
    parser.add_argument("--out", type=Path, default=RESULT, help="with --format written only to resume")
    parser.add_argument("--resume", action="store_true", help="keep what the result file says of right formats")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing more after so long")
    parser.add_argument("--keep", type=Path, help="a folder for the inputs that went wrong")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if given.child:
        print(json.dumps(fuzz(given.format[0], given.first, given.count, given.seed, given.home, given.keep)))
        return
    only, out = given.format or tuple(FORMATS), given.out if given.resume or not given.format else None
    result = fuzz_all(given.count, given.seed, only, given.keep, given.first, out, given.resume, given.seconds)
    print(json.dumps(result, indent=1))
    if result["uncaught"] or result["longer_than_10_s"] or result["formats_above_1_GB"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
