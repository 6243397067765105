"""The overhead of rollouts on Ray, and their scaling.

    python benchmarks/scale.py [--quick] [--out FOLDER] [--only SECTION …] [--record]
    python benchmarks/scale.py --recorded

A scripted model waits for a fixed time (or one drawn from recorded latencies of SmolLM2,
``scaling/latencies.json``) and clicks. The phone is simulated; MiniWoB++ is real pages in a real
Chromium. Sections, each in a process of its own:

- **overhead**: the same episodes in the local pool (8 concurrent) and on Ray (2 processes with 4
  each), with decisions of 1, 20 and 200 ms. Both are warm and take turns; medians of wall time.
  Then worker processes are killed while they play.
- **bookkeeping**: 10,000 queued episodes against 1,000, with 64 in flight: peak memory of the
  process that holds the queue and writes the traces. Each run is a process of its own.
- **weak**: 8, 64 and 512 workers (the last in groups of 64) on a Ray cluster of four nodes on this
  machine, latencies with a mean of 200 ms; and up to 1,000 in a discrete-event simulation with the
  costs measured here, which is compared with the measurements at 8 and 64.

``--out`` keeps the figures of each section, and measures only those that are missing. ``--record``
keeps all in benchmarks/results/scale.json and writes the tables of docs/scaling.md; ``--recorded``
prints what was kept. Measure on an otherwise idle machine, in about 8 minutes; ``--quick``
takes one, and its figures are rough.

The last line is JSON: ``overhead_1ms``, ``overhead_20ms``, ``overhead_200ms`` (the larger of both
environments; by environment in ``overhead``), ``episodes_lost``, ``episodes_twice``, ``bit_equal``
(whether all episodes on Ray, with kills, equal the local ones except for times),
``memory_ratio_local``, ``memory_ratio_ray``, ``weak_scaling`` (efficiency: episodes per second
divided by those of the same number of workers that wait only for the model; 8 and 64 measured, 512
and 1000 simulated), ``simulation_error`` (largest relative error at 8 and 64), ``binds_at``,
``lifted``, ``costs_ms``, ``written_per_s`` (episodes per second on disk, by the number that is
finished at once).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for the package benchmarks

from rich.console import Console

from benchmarks.scaling.report import markdown, show
from benchmarks.support.origin import commit, machine
from benchmarks.support.records import read_record, write_record
from benchmarks.support.timing_record import with_recorded
from swarm_ui.experiment.script_runner import script
from swarm_ui.files import write_atomic

ROOT = Path(__file__).resolve().parents[1]
SECTIONS = ("overhead", "bookkeeping", "weak")
NAME = "scale"
PAGE = ROOT / "docs" / "scaling.md"
PATIENCE = 900.0
"""Seconds for a section."""


def measured(section: str, quick: bool, folder: Path | None) -> dict[str, Any]:
    """The figures of a section; from ``folder`` if they are there."""
    kept = None if folder is None else folder / f"{section}{'-quick' * quick}.json"
    if kept is not None and kept.exists():
        found: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
        return found
    print(f"measuring: {section}", file=sys.stderr, flush=True)
    found = _run(section, quick)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(kept, json.dumps(found))
    return found


def _run(section: str, quick: bool) -> dict[str, Any]:
    """Measure in another process, after which no process of it is left."""
    command = [sys.executable, "-m", "benchmarks.scaling", section, *["--quick"] * quick]
    temporary = tempfile.mkdtemp(prefix="scale-")  # Ray's sockets need a short path
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    settings = {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "RAY_TMPDIR": temporary}
    # Ray's other processes have 30 s to start otherwise, which a busy machine may exceed.
    settings |= {"RAY_ADDRESS": "", "RAY_agent_register_timeout_ms": "120000"}
    # Ray's workers have a niceness of 15 otherwise: other load would slow only them.
    settings["RAY_worker_niceness"] = "0"
    began = time.monotonic()
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, **settings},
    )  # fmt: skip
    try:
        said, _ = process.communicate(timeout=PATIENCE)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(temporary, ignore_errors=True)
    if process.returncode:
        raise SystemExit(f"section '{section}' failed with exit code {process.returncode}")
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return found | {f"seconds_{section}": time.monotonic() - began}


def where_from() -> dict[str, Any]:
    """The origin of a record: commit, machine, and its load at the end."""
    return {"commit": commit(), "machine": machine(), "load": os.getloadavg()[0]}


def with_tables(page: str, data: dict[str, Any]) -> str:
    """The page of the documentation with these figures between its marks."""
    origin = f"Commit {data['commit'][:10]}, {data['machine']}."
    return with_recorded(page, f"{origin}\n\n{markdown(data)}")


@script
def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="about a minute; rough figures")
    parser.add_argument("--out", type=Path, help="folder that keeps the figures of each section")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS)
    parser.add_argument("--record", action="store_true", help="keep it, also in docs/scaling.md")
    parser.add_argument("--recorded", action="store_true", help="print what was kept")
    given = parser.parse_args()
    if given.recorded:
        data = read_record(NAME, dict[str, Any])
    else:
        data = {}
        for section in given.only:
            data |= measured(section, given.quick, given.out)
        data |= where_from()
    if given.record and not given.recorded:
        if given.quick or set(given.only) != set(SECTIONS):
            parser.error("--record needs all sections, and not --quick")
        write_record(NAME, data)
        write_atomic(PAGE, with_tables(PAGE.read_text(encoding="utf-8"), data))
    show(data, Console(width=150, soft_wrap=True))
    print(json.dumps(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
