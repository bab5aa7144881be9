"""Three simulated Ray nodes, one killed in the middle of a sweep; prints what became of the cells as JSON.

python ray_node_killed.py RUNS SEED
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path


def main() -> None:
    """See the module."""
    import ray
    from ray.cluster_utils import Cluster

    from deepwide.sweeping import Driver, Resources, cell_state, cells_of
    from deepwide.sweeping.ray import RayExecutor
    from sweeping.toys import toys

    runs = Path(sys.argv[1])
    spec = toys(
        run={"steps": 60, "checkpoint_every": 5, "seconds_per_step": 0.05}, grid={"width": [2, 3, 4]}, seeds=[0, 1, 2]
    )
    cells = cells_of(spec)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    nodes = [cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=1)]
    ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
    executor = RayExecutor(Resources(lease_seconds=3), None)
    report: dict[str, object] = {"slots": executor.slots}

    def kill_a_node() -> None:
        while sum(bool(cell_state(cell, runs).checkpoint) for cell in cells) < 3:
            time.sleep(0.05)
        raylet = nodes[0].all_processes["raylet"][0].process.pid
        victims = _children(raylet)
        report["killed"] = sum(_is_worker(pid, runs) for pid in victims)
        for pid in [raylet, *victims]:
            os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_a_node)
    killer.start()
    driver = Driver(executor, per_worker=1)
    driver.drive(cells, runs)
    killer.join()
    report["started"] = driver.outcome.started
    report["states"] = [cell_state(cell, runs).state for cell in cells]
    report["numbers"] = [cell_state(cell, runs).number for cell in cells]
    report["steps"] = [
        [json.loads(x)["step"] for x in (runs / c.id / "metrics.jsonl").read_text().splitlines()] for c in cells
    ]
    print(json.dumps(report))
    ray.shutdown()
    cluster.shutdown()


def _children(pid: int) -> list[int]:
    """Every descendant of a process."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            child = int(path.parent.name)
            found += [child, *_children(child)]
    return found


def _is_worker(pid: int, runs: Path) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"worker" in words and any(word.startswith(os.fsencode(runs)) for word in words)


if __name__ == "__main__":
    main()
