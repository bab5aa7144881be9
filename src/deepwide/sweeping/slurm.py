"""Workers as Slurm jobs: a batch script that runs the worker command, submitted with sbatch, watched with squeue.

A plain script and no pickled job, so that nothing but text is ever read back. Slurm sends SIGTERM a minute before a
job's time is up; the worker then writes its checkpoint, and the driver submits the cell again.
"""

import errno
import secrets
import shlex
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from deepwide.errors import DeepwideError
from deepwide.files import write_text
from deepwide.sweeping.executors import WORKER_LOG, Resources, open_log, worker_command, worker_environment

AT_A_TIME = 64
ASK_EVERY_SECONDS = 5.0
ENDED = -1  # squeue no longer lists it; the run folder tells how it went
SCRIPTS = ".slurm"
NO_ANSWER = -15


class SlurmExecutor:
    """Jobs of one worker each; `options` go to sbatch as they are (`--partition=gpu`, `--time=2:00:00`)."""

    name = "slurm"

    def __init__(self, resources: Resources, processes: int | None, options: Sequence[str], runs: Path) -> None:
        self.resources, self.options, self.runs = resources, list(options), runs
        self.slots = processes or AT_A_TIME
        self.ask_every = ASK_EVERY_SECONDS
        self._alive: set[str] = set()
        self._asked = 0.0
        self._submitted: dict[str, float] = {}

    def start(self, folders: Sequence[Path], owner: str) -> str:
        """Submit a job; returns its number."""
        open_log(folders[0]).close()  # Slurm would follow a link, and wait for a pipe
        script = self.runs / SCRIPTS / f"{owner.replace(':', '-')}-{secrets.token_hex(2)}.sh"
        write_text(script, self.script(folders, owner))
        done = self._call("sbatch", "--parsable", *self.options, str(script))
        if done.returncode == NO_ANSWER:
            raise TimeoutError(errno.ETIMEDOUT, "sbatch gave no answer within a minute")
        job = done.stdout.strip().split(";")[0]
        if done.returncode or not job.isdecimal():
            reply = " ".join((done.stderr or done.stdout).split())[:200]
            raise DeepwideError(f"sbatch refused the job: {reply or f'exit code {done.returncode}'}.")
        self._submitted[job] = time.monotonic()
        self._alive.add(job)
        return job

    def script(self, folders: Sequence[Path], owner: str) -> str:
        """The batch script: settings Slurm reads, environment, and the worker in place of the shell."""
        cpus, gpus = self.resources.threads, self.resources.gpus
        lines = ["#!/bin/sh", f"#SBATCH --job-name=deepwide-{folders[0].name}", f"#SBATCH --cpus-per-task={cpus}"]
        if gpus:
            lines.append(f"#SBATCH --gpus={max(1, round(gpus))}")
        lines += [
            f"#SBATCH --output={folders[0] / WORKER_LOG}",
            "#SBATCH --open-mode=append",
            "#SBATCH --signal=B:TERM@60",
        ]
        lines += [f"export {name}={shlex.quote(value)}" for name, value in worker_environment(self.resources).items()]
        return "\n".join([*lines, f"exec {shlex.join(worker_command(folders, owner, self.resources))}", ""])

    def poll(self, job: str) -> int | None:
        """None while squeue lists the job; one question for all jobs, every few seconds."""
        if time.monotonic() - self._asked > self.ask_every:
            asked = time.monotonic()
            done = self._call("squeue", "--noheader", "--format=%i", "--me")
            if done.returncode == 0:  # else the controller is busy: no answer does not mean that a job has ended
                self._alive, self._asked = set(done.stdout.split()), asked
        # A job may take a moment to appear in the queue after sbatch has answered.
        young = self._submitted[job] > self._asked - 1.0
        return None if job in self._alive or young else ENDED

    def stop(self, jobs: Sequence[str]) -> None:
        """Cancel: jobs that wait leave the queue, workers that run get SIGTERM and write their checkpoints."""
        if jobs:
            self._call("scancel", *jobs)

    def _call(self, *command: str) -> "subprocess.CompletedProcess[str]":
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        except FileNotFoundError:
            why = f"running on slurm needs {command[0]} on PATH: start it on a login node of the cluster."
            raise DeepwideError(why) from None
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, NO_ANSWER, "", "no answer within a minute")
