"""Breaks of our own lines that some test must notice: what mutations.py applies, one at a time.

Each is a file of src/deepwide, the tests that should notice, a name, a text that occurs there once, and what replaces
it. `review` marks the kinds that a review from outside tried first.
"""

from typing import NamedTuple


class Mutant(NamedTuple):
    """One break."""

    file: str
    tests: tuple[str, ...]
    name: str
    old: str
    new: str
    review: bool = False


def _of(file: str, tests: str, *breaks: tuple[str, str, str] | tuple[str, str, str, bool]) -> list[Mutant]:
    return [Mutant(file, tuple(tests.split()), *each) for each in breaks]


R = True  # of the review

RUN = (
    _of(
        "run/lease.py",
        "tests/run/test_lease.py tests/run/test_writer.py",
        ("the fence is off", 'if held is None or (held["number"], held.get("nonce")) != (self.number, self.nonce):',
         "if False:", R),
        ("the number is not raised", 'held["number"] + 1 if held else 1', 'held["number"] if held else 1', R),
        ("a dead process is not known", 'if held["ended"] or is_dead(held.get("process")):\n        return 0.0',
         'if held["ended"]:\n        return 0.0', R),
        ("a lease is given back unfenced", "with self.fenced():\n                    self.write(ending, note)",
         "with lock(self.path, self.patience):\n                    self.write(ending, note)", R),
        ("the nonce is always the same", "secrets.token_hex(8)", '"0"'),
        ("the nonce is not compared", '(held["number"], held.get("nonce")) != (self.number, self.nonce)',
         'held["number"] != self.number'),
        ("a finished run may be leased", "raise finished(self.path)\n            held =", "pass\n            held ="),
        ("a held lease may be taken", "(left := remaining(self.path, held)) > 0", "(left := remaining(self.path, held)) > 1e9"),
        ("this machine's clock decides", "stamp(handle)\n    return os.fstat(handle).st_mtime",
         "stamp(handle)\n    return time.time() + 0.0"),
        ("a lease never expires", 'float(held["seconds"]) - (now - renewed)', 'float(held["seconds"])'),
        ("a lease of tomorrow is waited for", "if renewed > now + FUTURE_SECONDS:", "if renewed > now + 1e12:"),
        ("the heartbeat does not beat", "            try:\n                self.renew()\n", "            try:\n                pass\n"),
        ("a beat is unfenced", "with self.fenced():\n            stamp(self.path / LEASE)",
         "with lock(self.path, self.patience):\n            stamp(self.path / LEASE)"),
        ("the lock is not taken", "fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)", "fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)"),
        ("a lock of a moved folder counts", "if not _is_at(handle, folder / LOCK):", "if False:"),
        ("the lock follows links", "os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW", "os.O_RDWR | os.O_CREAT"),
        ("EIO does not pass", '"EIO", "ESTALE"', '"ESTALE"'),
        ("a full quota is no full disk", "(errno.ENOSPC, errno.EDQUOT)", "(errno.ENOSPC,)"),
        ("seconds may be anything", 'if not 0 < held["seconds"] <= LONGEST_LEASE or', "if"),
        ("a silent lease is never silent", 'return self._clock() - since > float(held["seconds"])', "return False"),
    )
    + _of(
        "run/writer.py",
        "tests/run/test_writer.py tests/run/test_power.py",
        ("half a line stays after a failed append", "os.truncate(self.path / METRICS, self._chain.size)", "pass", R),
        ("metrics are not synced before a checkpoint", "files.sync(file.fileno(), METRICS)", "pass", R),
        ("entries of the folder are not synced", "files.sync_folder(self.path)\n            self._entries_synced",
         "self._entries_synced"),
        ("a removal is not synced", "files.sync_folder(home)", "pass"),
        ("old checkpoints go first", "                files.move(temporary, target)\n                self._verified_steps.add(step)",
         "                self._prune(home, step, 1)\n                files.move(temporary, target)\n                self._verified_steps.add(step)"),
        ("all checkpoints but the newest go", "good < keep", "good < 1"),
        ("a bad checkpoint counts as kept", "except checkpoint.BadCheckpoint:\n                return False",
         "except checkpoint.BadCheckpoint:\n                return True"),
        ("a result does not end the right to write", "if has_result(self.path):\n                raise finished", "if False:\n                raise finished"),
        ("metrics changed by others are continued", "if file.tell() != self._chain.size:", "if False:"),
        ("lost checkpoints start over", "if chain.records and self.lease.saved and not saved:", "if False:"),
        ("a full disk is no full disk", 'self._ending = "disk_full"', "pass"),
        ("the result does not say where metrics end", '"records_check": self._chain.check', '"records_check": ""'),
        ("temporaries stay", "files.clear_temporaries(self.path / CHECKPOINTS)", "pass"),
    )
    + _of(
        "files.py",
        "tests/run/test_power.py tests/test_files.py",
        ("files are not synced", "os.fsync(handle)", "if os.path.isdir(f'/proc/self/fd/{handle}'):\n        os.fsync(handle)", R),
        ("folders are not synced", "handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)\n    try:",
         "handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)\n    try:\n        return", R),
        ("a new file is not synced", "        faults.write(file, content, f\"write of {path.name}\")\n        sync(file.fileno(), path.name)",
         "        faults.write(file, content, f\"write of {path.name}\")"),
        ("a replaced file is not synced", "            sync(file.fileno(), path.name)\n        move(temporary, path)", "        move(temporary, path)"),
        ("a rename is not synced", "    sync_folder(target.parent)\n", ""),
        ("it is renamed before it is synced", "            sync(file.fileno(), path.name)\n        move(temporary, path)",
         "            move(temporary, path)\n            sync(file.fileno(), path.name)"),
        ("new folders are not synced", "        sync_folder(folder.parent)\n", ""),
        ("a pipe is waited for", "os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)\n    try:\n        if not stat.S_ISREG(os.fstat(handle).st_mode):",
         "os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)\n    try:\n        if False:"),
        ("written in place", "    temporary = temporary_beside(path)\n    try:\n        with open(temporary, \"xb\") as file:\n            faults.write(file, content, f\"temporary",
         "    temporary = path\n    try:\n        with open(temporary, \"wb\") as file:\n            faults.write(file, content, f\"temporary"),
        ("a temporary stays after an error", "        temporary.unlink(missing_ok=True)\n        raise", "        raise"),
        ("half a folder can be seen", "    os.rename(path, gone)\n", "    gone = path\n"),
    )
    + _of(
        "run/checkpoint.py",
        "tests/run/test_checkpoint.py tests/run/test_power.py",
        ("contents are not compared", "if hashlib.sha256(content).hexdigest() != expected:", "if False:", R),
        ("run and step are not compared", 'if manifest.get("run") != run or str(manifest.get("step")) != folder.name:', "if False:", R),
        ("the manifest is not compared", 'manifest.pop("sha256", None) == _hash_of(manifest)', '(manifest.pop("sha256", None) or 1)', R),
        ("its folder is not synced", "    files.sync_folder(folder)\n", "", R),
        ("a link to nowhere is no checkpoint", "if not os.path.lexists(checkpoints):", "if not checkpoints.is_dir():"),
        ("metrics before it are not stated", '{"records": metrics.records, "check": metrics.check}', '{"records": 0, "check": ""}'),
    )
    + _of(
        "run/metrics.py",
        "tests/run/test_metrics.py tests/run/test_writer.py",
        ("a torn line is a record", "                return  # a record that a crash cut short", "                pass  # a record that a crash cut short", R),
        ("one step too many is cut", 'record["step"] > until_step', 'record["step"] >= until_step', R),
        ("a result need not agree with metrics", "if chain.sealed and (result.get", "if False and (result.get"),
        ("a result without checksum is believed", "if last is not None and not chain.sealed:", "if False:"),
        ("an endless number is a record", 'if not is_finite(record):', "if False:"),
        ("an endless number is a result", "if not is_finite(result):", "if False:"),
        ("any status will do", 'if result.get("status") not in FINISHED:', "if False:"),
        ("a record needs no step", 'if isinstance(record.get("step"), bool) or not isinstance(record.get("step"), int):', "if False:"),
    )
    + _of(
        "run/records.py",
        "tests/run/test_records.py tests/run/test_metrics.py",
        ("NaN is read", "parse_constant=_refuse", "parse_constant=float", R),
        ("keys are not sorted", "sort_keys=True", "sort_keys=False"),
        ("NaN is written", "return value if math.isfinite(value) else None", "return value"),
    )
    + _of(
        "run/seals.py",
        "tests/run/test_seals.py tests/run/test_metrics.py",
        ("the record before does not count", 'f"{previous} {run} ".encode() + body', 'f"{run} ".encode() + body'),
        ("the run does not count", "if owner is not None and owner != run:", "if False:"),
        ("the check is not compared", "if check is not None and check != right:", "if False:"),
        ("a lost seal is not noticed", "if owner is None and self.sealed:", "if False:"),
    )
    + _of(
        "run/folder.py",
        "tests/run/test_folder.py tests/run/test_power.py",
        ("a config of another run is believed", "if named != path.name:", "if False:"),
        ("a damaged checkpoint is not skipped", 'log.warning("checkpoint %d is damaged and was skipped: %s.", step, error)\n                continue',
         'log.warning("checkpoint %d is damaged and was skipped: %s.", step, error)\n                return None'),
        ("a new run's folder is not synced", "                files.sync_folder(temporary)\n", ""),
        ("metrics a checkpoint needs are not asked for", "checks.get(before.records) != before.check", "False"),
        ("EIO is damage", "                if error.errno != errno.EIO:\n                    raise", "                if False:\n                    raise"),
        ("no good checkpoint starts over", "        if steps:\n            remedy", "        if False:\n            remedy"),
    )
    + _of(
        "run/scrubbing.py",
        "tests/run/test_scrubbing.py",
        ("checkpoints are not scrubbed", "yield from _scrub_checkpoints(path, saved, checks)", "pass"),
        ("metrics of a checkpoint are not compared", "elif checks.get(before.records) != before.check:", "elif False:"),
    )
)

SWEEPING = (
    _of(
        "sweeping/driver.py",
        "tests/sweeping/test_simulation.py tests/sweeping/test_driver.py",
        ("fenced and stopped count as crashes", "NO_CRASH = (Exit.HELD, Exit.FENCED, Exit.STOPPED, Exit.DISK_FULL)", "NO_CRASH = (Exit.DISK_FULL,)", R),
        ("the unreachable are never forgotten", "            if unreachable:\n", "            if False:\n", R),
        ("thirty crashes are allowed", "MOST_CRASHES = 3 ", "MOST_CRASHES = 30 ", R),
        ("all cells are blamed", "return list(leases) or left", "return left", R),
        ("progress does not count", "if newest > tries.saved:", "if False:"),
        ("no back-off", "return float(min(LONGEST_BACK_OFF", "return 0.0 * float(min(LONGEST_BACK_OFF"),
        ("an orderly exit is a crash", 'if any(held["ended"] and not held.get("note") for held in leases.values()):', "if False:"),
        ("an unreadable cell ends the drive", "        except UnreadableRun as error:\n            self.outcome.unreadable[path.name] = str(error)\n            return True",
         "        except UnreadableRun as error:\n            self.outcome.unreadable[path.name] = str(error)\n            raise"),
        ("a refused start is final", "if self._refused >= MOST_LOOKS:", "if self._refused >= 1:"),
        ("a blocked cell has failed", "if tries.deaths < MOST_CRASHES:", "if False:"),
        ("cells of others are not waited for", "            self._elsewhere.add(path)\n            return True\n        return False", "            return True\n        return False"),
        ("a full disk is driven on", "self.outcome.disk_full |= code == Exit.DISK_FULL", "pass"),
        ("a finished worker is waited for", "job.finished_since > LEAVE_SECONDS", "job.finished_since > 1e9"),
    )
    + _of(
        "sweeping/worker.py",
        "tests/sweeping/test_worker.py tests/run/test_errors.py",
        ("an error that may pass is a result", "or is_disk_full(error) or is_passing(error):", "or is_disk_full(error):"),
        ("a full disk is a result", "or is_disk_full(error) or is_passing(error):", "or is_passing(error):"),
        ("missing data are a result", "about_the_folder or isinstance(error, OutsideError) or", "about_the_folder or"),
        ("out of memory is a failure", '"oom" if memory else "failed"', '"failed"'),
    )
    + _of(
        "sweeping/grid.py",
        "tests/sweeping/test_grid.py",
        ("seeds are one run", "name = run_id(resolved.config, **identity)", 'name = run_id(resolved.config | {"seed": 0}, **identity)'),
        ("a width may miss by anything", "if abs(reached / size - 1) > iso.tolerance:", "if False:"),
        ("any number of cells", "if number > MOST_CELLS:", "if False:"),
        ("a key may be set twice", 'raise DeepwideError(f"both run.{key} and grid.{written} set', 'print(f"both run.{key} and grid.{written} set'),
    )
    + _of(
        "sweeping/results.py",
        "tests/sweeping/test_results.py",
        ("an unreadable cell is left out in silence", "    if unreadable:\n        more", "    if False:\n        more"),
        ("timings are exported", "if timings or key.split", "if True or key.split"),
    )
    + _of(
        "sweeping/state.py",
        "tests/sweeping/test_state.py tests/sweeping/test_reader.py",
        ("a lost cell is running", '"running" if _is_held(folder.path, held, now) else "lost"', '"running"'),
        ("a change is not read again", "if before is not None and before[0] == now and", "if before is not None and"),
        ("what runs is not read again", 'before[1].state not in ("running", UNREADABLE)', "before[1].state not in (UNREADABLE,)"),
    )
    + _of(
        "sweeping/verifying.py",
        "tests/sweeping/test_verifying.py",
        ("damage is not counted", 'if finding.kind == "damaged"}', 'if finding.kind == "leftover"}'),
    )
)

TRAINING = (
    _of(
        "training/loop.py",
        "tests/training/test_loop.py",
        ("the first loss is lost on resume", 'int(state["step"]), state["first_loss"], state["last_loss"]', 'int(state["step"]), 0.0, state["last_loss"]', R),
        ("the micro-batch is not restored", '            self.micro = math.gcd(int(state["micro_batch"]), self.share)\n', "", R),
        ("moments are not restored", "self.optimiser.load(tensors, self.step, self.here.like)", "pass"),
        ("every step sees the first batch", "first = (step - 1) * self.config.batch", "first = 0 * self.config.batch"),
        ("a micro-batch counts as a whole", "* (rows.answers / answers)", ""),
        ("divergence is not noticed", "if not math.isfinite(loss) or not math.isfinite(norm):", "if False:"),
        ("a loss far above is fine", "elif self.first_loss and loss > FAR_ABOVE * self.first_loss:", "elif False:"),
        ("records past a checkpoint stay", "lease.cut_metrics(-1 if saved is None else saved)", "pass"),
        ("the last step has no checkpoint", "learner.step % c.checkpoint_every == 0 or learner.step == learner.steps", "learner.step % c.checkpoint_every == 0"),
        ("gradients are left after a failure", "        except BaseException:\n            self.optimiser.forget()\n            raise", "        except BaseException:\n            raise"),
        ("other tokens are trained on", 'if state.get("data", self.data) != self.data:', "if False:"),
        ("a stop saves nothing", "        except Stopped:\n            self._save()", "        except Stopped:\n            pass"),
    )
    + _of(
        "data/cache.py",
        "tests/data/test_cache.py tests/data/test_corpus.py",
        ("tokens are not hashed", 'if digest.hexdigest() != sha256:', "if False:", R),
        ("tokens beyond the vocabulary", "if kind and tokens and largest >= vocab:", "if False:"),
        ("everybody may write", "if path.exists() and path.stat().st_mode & stat.S_IWOTH:", "if False:"),
        ("a large file is hashed never", "if about.st_size > HASHED_EACH_TIME and seen.is_file():", "if about.st_size > HASHED_EACH_TIME:"),
        ("a file changed back in time is believed", "about.st_mtime_ns, about.st_ctime_ns, sha256", "sha256"),
    )
    + _of(
        "data/corpus.py",
        "tests/data/test_corpus.py",
        ("tokens of another text", '(about["fingerprint"], about["version"]', '(name, about["version"]'),
        ("an index points anywhere", ' and about["check"] == _check_of(stamp, about["fingerprint"])', ""),
        ("tokens are not synced", '                sync(file.fileno(), f"{part}.bin")\n', ""),
        ("their folder is not synced", "            sync_folder(temporary)\n", ""),
    )
)

FITTING = (
    _of(
        "fitting/crossings.py",
        "tests/fitting/test_crossings.py tests/fitting/test_transition.py",
        ("equal losses cross", "if np.max(np.abs(delta)) < ROUNDING:", "if False:", R),
        ("no correction for many sizes", "1 - 0.025 / comparisons", "1 - 0.025", R),
        ("placement is left out of the weights", "W = np.linalg.inv(C + E + 1e-18 * np.eye(len(L)))", "W = np.linalg.inv(C + 1e-18 * np.eye(len(L)))", R),
        ("the falling root is taken", "(b + 2 * a * x > 0) == rising", "(b + 2 * a * x > 0) != rising"),
        ("curves are always told apart", "curves.same_curve(shallow, deep) > SAME_CURVE", "curves.same_curve(shallow, deep) > 2"),
        ("the halfway depth is the mean", "return math.sqrt(self.shallow * self.deep)", "return (self.shallow + self.deep) / 2"),
        ("errors of neighbours are independent", "C = J @ np.array(curves.covariance) @ J.T / 4", "C = np.diag(np.diag(J @ np.array(curves.covariance) @ J.T / 4))"),
    )
    + _of(
        "fitting/ridge.py",
        "tests/fitting/test_ridge.py",
        ("Fieller without the covariance", "covariance[0, 0] + 4 * z * covariance[0, 1] + 4 * z**2", "covariance[0, 0] + 4 * z**2", R),
        ("any curvature is a bowl", "if not dof or b2 <= t95(dof) * math.sqrt(max(0.0, float(covariance[1, 1]))):", "if not dof or b2 <= 0:", R),
        ("the error of the curvature is left out", "J[0, i1], J[0, i2] = -1 / (2 * b2), b1 / (2 * b2**2)", "J[0, i1], J[0, i2] = -1 / (2 * b2), 0.0", R),
        ("left-out terms do not widen the law", "error[0, 0] += max(", "error[0, 0] += 0 * max("),
        ("the normal's quantile", "error *= (t95(self.dof) / Z95) ** 2", "error *= 1.0"),
        ("no error of growth beyond the runs", "growth_error=BEYOND[1]", "growth_error=0.0"),
    )
    + _of(
        "fitting/regression.py",
        "tests/fitting/test_regression.py",
        ("the run is the unit", "dof = int(observed.sum()) - (k - nuisance)", "dof = len(y) - (k - nuisance)"),
        ("seeds cost freedom", "(k - nuisance)\n    root", "k\n    root"),
        ("bounds are losses", "np.where(censored, np.maximum(expected_above(fitted, y, spread), y), y)", "y"),
        ("resamples ignore groups", "scaled * signs[:, groups]", "scaled * draw.choice([-1.0, 1.0], size=(number, len(groups)))"),
        ("residuals are not scaled", "self.residuals / np.sqrt(np.clip(1 - self.leverage, 0.05, 1))", "self.residuals"),
    )
    + _of(
        "fitting/mixed.py",
        "tests/fitting/test_mixed.py",
        ("a mixture has one mean", 'within + np.einsum("c,ci,cj->ij", self.weights, spread, spread)', "within"),
        ("the prior is ignored", "P = sigma2[:, None] * precision", "P = 1e-9 * sigma2[:, None] * precision"),
    )
    + _of(
        "fitting/tables.py",
        "tests/fitting/test_tables.py",
        ("a slipped row is read", "if any(line[len(header) :]):", "if False:"),
        ("a column may appear twice", "if twice := [name", "if False and [name"),
        ("a packed table may be endless", "file.read(LARGEST_TABLE + 1)", "file.read()"),
    )
)

LAWS = (
    _of(
        "laws/kinds.py",
        "tests/laws/test_kinds.py tests/laws/test_law.py",
        ("the interval of a transition without its covariance", "np.sqrt(aa + 2 * L * ab + L * L * bb)", "np.sqrt(aa + L * L * bb)", R),
        ("a coarse grid", "for _ in range(6):  # shrink a grid", "for _ in range(1):  # shrink a grid", R),
        ("the interval of a ridge without its covariance", "ss + 2 * far * sd + far**2 * dd", "ss + far**2 * dd", R),
        ("no error beyond the runs", "(self.growth_error * beyond) ** 2", "0.0 * beyond"),
        ("half of a base", "if (self.base_a is None) != (self.base_b is None):", "if False:"),
        ("growth never relaxes", "(p + 2 * q * end - g) * tail", "(p + 2 * q * end - g) * beyond"),
        ("a surface in the wrong parameters", "np.log(law.layer_matrices * L * d**2), np.log(L)", "np.log(law.layer_matrices * L * d**2 + law.embedding_rows * d), np.log(L)"),
        ("an aspect of 6Ld²", "(12 * self.ratio**2)", "(6 * self.ratio**2)"),
    )
    + _of(
        "laws/law.py",
        "tests/laws/test_law.py tests/laws/test_kinds.py",
        ("any matrix is a covariance", "if aa < 0 or bb < 0 or ab != ba or", "if False and", R),
        ("a cost without the error of the place", "2 * self.curvature * linear * place_error", "0.0"),
        ("a cost far beyond the data", "if not (low - SLACK <= min(x, instead_of) and max(x, instead_of) <= high + SLACK):", "if False:"),
        ("nothing is extrapolated", "return fitted is not None and not fitted[0] <= block_params <= fitted[1]", "return False"),
    )
    + _of(
        "laws/book.py",
        "tests/laws/test_book.py",
        ("impossible depths are used", "    if wrong.size:\n", "    if False:\n"),
        ("any file is a law", 'if not isinstance(document, dict) or document.get("format") != FORMAT:', "if not isinstance(document, dict):"),
        ("the wrong exponent", "** (b / (a + b))", "** (a / (a + b))"),
    )
)

COUNTING = (
    _of(
        "shape/shape.py",
        "tests/shape/test_shape.py",
        ("keys and values are counted once", "return d * (q + 2 * kv) + q * d", "return d * (q + kv) + q * d", R),
        ("a gate is not counted", "into = 2 if shape.ff", "into = 1 if shape.ff", R),
        ("biases of keys are not counted", "shape.qkv_bias * (q + 2 * kv) + shape.out_bias", "shape.qkv_bias * (q + kv) + shape.out_bias", R),
    )
    + _of(
        "shape/flops.py",
        "tests/shape/test_flops.py",
        ("backward costs as much as forward", "return 3 * self.forward + self.recomputed", "return 2 * self.forward + self.recomputed", R),
        ("the diagonal is not counted", "triangle = T * (T + 1) // 2", "triangle = T * (T - 1) // 2", R),
        ("values are free", "shape.heads * (shape.head_dim + values)", "shape.heads * shape.head_dim", R),
    )
    + _of(
        "separation/field.py",
        "tests/separation/test_field.py",
        ("products may round", "if largest + q * half * half >= EXACT:", "if False:", R),
        ("residues are not reduced", "    np.rint(q, out=q)\n", "    np.floor(q, out=q)\n", R),
        ("pivots are not moved", "            _close_ranks(rest, pivots)\n", "", R),
    )
    + _of(
        "planning/budget.py",
        "tests/planning/test_budget.py tests/planning/test_planner.py",
        ("the total is the blocks", "            return sizes.params.total\n        shape", "            return sizes.params.block\n        shape", R),
        ("one key per value", "cached = 2 * self.batch", "cached = self.batch", R),
        ("any budget", "if np.all(np.isfinite(amounts)) and amounts.min() >= low and amounts.max() <= high:", "if True:", R),
    )
)

MUTANTS: tuple[Mutant, ...] = (*RUN, *SWEEPING, *TRAINING, *FITTING, *LAWS, *COUNTING)
