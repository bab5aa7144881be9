"""What a run of each study costs: `python -m benchmarks.studies.costs [NAME …]` writes src/deepwide/studies/costs.json.

Preset quick of the studies named is run here with one worker and its processor time taken: that of the workers is
training, that of this process is measuring, judging and drawing. Processor time depends little on what else the machine
does. Preset cpu of every study that has a quick one has what its published run recorded; where that did not record
training and measuring apart, it is scaled from quick: training by the ratio of the engine's forecasts, which count
FLOPs and the time that every step and layer takes besides, measuring by the number of runs.
"""

import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.page_tables import published_studies
from deepwide.studies import Study, dry_run, run_study, studies
from deepwide.studies.costs import FILE, Cost
from deepwide.sweeping import cells_of, make_spec


def processor_seconds() -> tuple[float, float]:
    """Of the processes that this one started and that have ended, and of this one."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime, time.process_time()


def trains(study: Study, preset: str) -> tuple[int, int]:
    """How many networks a preset trains, and their FLOPs; a dry run without its timing."""
    specs = study.sweeps(study.settings(preset))
    cells = [cell for name, spec in specs.items() for cell in cells_of(make_spec({"name": name, **spec}))]
    return len(cells), sum(cell.cost.train_flops for cell in cells)


def quick_cost(study: Study) -> Cost:
    """Preset quick, run here."""
    runs, flops = trains(study, "quick")
    with tempfile.TemporaryDirectory() as home:
        before = processor_seconds()
        run_study(study, "quick", out=Path(home) / "quick", processes=1)
        training, measuring = (after - first for after, first in zip(processor_seconds(), before, strict=True))
    return Cost(
        runs=runs,
        train_flops=flops,
        training_seconds=round(training, 1) if runs else 0.0,
        measuring_seconds=round(measuring, 1),
        basis="run with processor time taken",
    )


def cpu_cost(study: Study, quick: Cost) -> Cost:
    """Preset cpu: as its published run recorded it, or scaled."""
    runs, flops = trains(study, "cpu")
    counts = {"runs": runs, "train_flops": flops}
    published = published_studies().get(f"{study.name}-cpu")
    if published is not None and not runs:
        seconds = published.measured.seconds
        return Cost(**counts, training_seconds=0.0, measuring_seconds=round(seconds, 1), basis="published run")
    if published is not None and published.measured.training_seconds:
        measured = published.measured
        assert measured.training_seconds is not None
        assert measured.measuring_seconds is not None
        return Cost(
            **counts,
            training_seconds=round(measured.training_seconds, 1),
            measuring_seconds=round(measured.measuring_seconds, 1),
            basis="published run",
        )
    training = quick.training_seconds * _forecast(study, "cpu") / _forecast(study, "quick")
    measuring = quick.measuring_seconds * runs / quick.runs
    return Cost(
        **counts,
        training_seconds=round(training),
        measuring_seconds=round(measuring),
        basis="scaled from quick by the forecast",
    )


def _forecast(study: Study, preset: str) -> float:
    """Seconds of one worker for everything that a preset trains, by the engine's forecast."""
    forecast = dry_run(study, preset, out=Path(tempfile.gettempdir()) / "no-such-folder" / study.name)
    assert forecast.expected_seconds is not None, forecast.missing
    return forecast.expected_seconds * forecast.workers


def main() -> None:
    """Measure preset quick of the studies named; take preset cpu anew for all that have been measured."""
    known = studies()
    costs = json.loads(FILE.read_text(encoding="utf-8"))["studies"] if FILE.exists() else {}
    for name in sys.argv[1:]:
        print(f"{name}: quick", flush=True)
        costs[name] = {"quick": quick_cost(known[name]).model_dump()}
        _save(costs)
    for name in costs:
        print(f"{name}: cpu", flush=True)
        cpu = cpu_cost(known[name], Cost.model_validate(costs[name]["quick"]))
        costs[name] = {"quick": costs[name]["quick"], "cpu": cpu.model_dump()}
    _save(costs)


def _save(costs: dict[str, Any]) -> None:
    machine = f"{os.cpu_count()} cores of {_processor()}, shared with other work"
    content = {"machine": machine, "studies": dict(sorted(costs.items()))}
    FILE.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "one machine")


if __name__ == "__main__":
    main()
