"""Two Ray nodes in two network namespaces; the link between them is cut in the middle of a sweep. Prints JSON.

    python ray_link_cut.py RUNS        needs root

With the link goes the shared file system, as on any cluster: the worker that is cut off hangs in its next write (here
by SIGSTOP, because the nodes share a disk). Its lease runs out, the cell moves to the node that is left, and when the
link is back the late write is refused.

This process makes the namespaces and the nodes, and a process of its own drives the sweep, because Ray ends a process
that cannot reach its cluster. On a busy machine a node may die before it has joined; then everything is made again.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE, THERE, PORT = "10.251.7.1", "10.251.7.2", "6399"
UP = "the cluster is up"
TRIES = 3
PATIENCE = 100.0  # seconds, with a busy machine in mind
# A lost node is noticed within 10 s, and a busy one is not lost: six checks in a row must fail.
QUICK = {
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "1500",
    "RAY_health_check_failure_threshold": "6",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "30",
}


def ip(*words: str) -> None:
    """One command of iproute2."""
    subprocess.run(["ip", *words], check=True)


def start_node(space: str, *words: str) -> "subprocess.Popen[bytes]":
    """A Ray node that lives as long as this process of it; in a namespace, if one is named."""
    ray = str(Path(sys.executable).with_name("ray"))
    fixed = ["start", "--block", "--num-cpus=1", "--disable-usage-stats", "--object-store-memory=80000000"]
    prefix = ["ip", "netns", "exec", space] if space else []
    return subprocess.Popen(
        [*prefix, ray, *fixed, *words], stdout=sys.stderr, stderr=sys.stderr, start_new_session=True
    )


def attempt(runs: str, number: int) -> str:
    """What the process that drives the sweep prints, in namespaces and on nodes made for it."""
    space, link = f"dw{os.getpid()}-{number}", f"dwv{os.getpid()}{number}"
    nodes = []
    ip("netns", "add", space)
    try:
        ip("link", "add", link, "type", "veth", "peer", "name", "far", "netns", space)
        ip("addr", "add", f"{HERE}/30", "dev", link)
        ip("link", "set", link, "up")
        for words in (
            ("addr", "add", f"{THERE}/30", "dev", "far"),
            ("link", "set", "far", "up"),
            ("link", "set", "lo", "up"),
        ):
            ip("-n", space, *words)
        nodes.append(start_node("", "--head", f"--node-ip-address={HERE}", f"--port={PORT}", "--include-dashboard=0"))
        time.sleep(6)
        nodes.append(start_node(space, f"--address={HERE}:{PORT}", f"--node-ip-address={THERE}"))
        return _printed([sys.executable, __file__, runs, space])
    finally:
        for node in nodes:
            os.killpg(node.pid, signal.SIGKILL)
            node.wait()
        subprocess.run(["ip", "netns", "del", space], check=False)
        subprocess.run(["ip", "link", "del", link], check=False, stderr=subprocess.DEVNULL)


def _printed(command: list[str]) -> str:
    """What a process prints; it is ended if its cluster is not up in time."""
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as inside:
        assert inside.stdout is not None
        watch = threading.Timer(PATIENCE, inside.kill)
        watch.start()
        for line in inside.stdout:
            lines.append(line)
            if line.startswith(UP):
                watch.cancel()
        watch.cancel()
    return "".join(lines)


def _pid(folder: Path) -> int:
    return int(json.loads((folder / "lease.json").read_text())["process"]["pid"])


def _space(pid: int) -> str:
    return os.readlink(f"/proc/{pid}/ns/net")


def drive(runs: Path, space: str) -> None:
    """Two cells on two nodes, and the cut."""
    import ray

    from deepwide.sweeping import Driver, Resources, cell_state, cells_of
    from deepwide.sweeping.ray import RayExecutor
    from sweeping.toys import toys

    cells = cells_of(toys(run={"steps": 100, "checkpoint_every": 5, "seconds_per_step": 0.1}, grid={}, seeds=[0, 1]))
    ray.init(address=f"{HERE}:{PORT}", _node_ip_address=HERE, log_to_driver=False, logging_level="error")
    deadline = time.monotonic() + PATIENCE
    while ray.cluster_resources().get("CPU", 0) < 2:
        assert time.monotonic() < deadline, "the second node did not join"
        time.sleep(0.2)
    print(UP, flush=True)
    report: dict[str, object] = {"nodes": 2}
    lost: list[int] = []

    def cut() -> None:
        while sum(bool(cell_state(cell, runs).checkpoint) for cell in cells) < 2:
            time.sleep(0.05)
        report["saved"] = [cell_state(cell, runs).checkpoint for cell in cells]
        ip("-n", space, "link", "set", "far", "down")
        lost.extend(pid for pid in (_pid(runs / cell.id) for cell in cells) if _space(pid) != _space(os.getpid()))
        for pid in lost:
            os.kill(pid, signal.SIGSTOP)

    threading.Thread(target=cut, daemon=True).start()
    driver = Driver(RayExecutor(Resources(lease_seconds=4), 2), per_worker=1)
    driver.drive(cells, runs)
    report["lost"] = len(lost)
    ip("-n", space, "link", "set", "far", "up")
    for pid in lost:
        os.kill(pid, signal.SIGCONT)
    time.sleep(3)
    report["refused"] = sum("refused" in (runs / cell.id / "worker.log").read_text() for cell in cells)
    report["states"] = [cell_state(cell, runs).state for cell in cells]
    report["numbers"] = [cell_state(cell, runs).number for cell in cells]
    lines = [(runs / cell.id / "metrics.jsonl").read_text().splitlines() for cell in cells]
    report["steps"] = [[json.loads(line)["step"] for line in each] for each in lines]
    print(json.dumps(report), flush=True)
    ray.shutdown()


def main() -> None:
    """See the module."""
    os.environ.update(QUICK)
    if len(sys.argv) > 2:
        drive(Path(sys.argv[1]), sys.argv[2])
        return
    for number in range(TRIES):
        printed = attempt(sys.argv[1], number)
        if UP in printed:
            break
    print(printed)
    sys.exit(not any(line.startswith("{") for line in printed.splitlines()))


if __name__ == "__main__":
    main()
