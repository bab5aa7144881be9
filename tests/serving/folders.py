"""A folder with everything in it, small: sweeps by real toys, a study, a certificate, and hostile names."""

import json
import shutil
from pathlib import Path

from benchmarks.web.served import write_runs

from deepwide.separation import rank
from sweeping.toys import write_toml

ROOT = Path(__file__).resolve().parents[2]
EVIL = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


def write_folder(home: Path) -> Path:
    """Two folders of simulated runs, one unreadable run among them; a spec that nobody has begun; a study; a rank."""
    write_runs(home / "runs" / "small", 36, running=1, waiting=2, corrupt=1)
    write_runs(home / "runs" / "few", 2)
    (home / "sweeps").mkdir()
    write_toml(home / "sweeps" / "toys.toml")
    (home / "sweeps" / "other.toml").write_text('[tool]\nname = "something else"\n')
    study = home / "studies" / "stair-cpu"
    shutil.copytree(ROOT / "results" / "studies" / "stair-cpu", study)
    (study / "evil.svg").write_text(f"<svg xmlns='http://www.w3.org/2000/svg'>{EVIL}</svg>")
    (home / "studies" / "begun").mkdir()
    (home / "studies" / "begun" / "started.json").write_text("{}")
    (home / "studies" / "torn").mkdir()
    (home / "studies" / "torn" / "study.json").write_text('{"study":')
    (home / "ranks").mkdir()
    certificate = rank(depth=2, width=2)
    (home / "ranks" / "L2-d2-H1-seed0.json").write_text(json.dumps(certificate.model_dump(mode="json")))
    (home / "ranks" / "L9-d9-H9-torn.json").write_text("{")
    (home / "secret.txt").write_text("not for clients")
    return home
