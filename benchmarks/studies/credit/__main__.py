"""Comparison of credit sources: their accuracy, their cost, and what a team learns from each.

    swarm-ui models pull smollm2    # the model of the learned critic
    python -m benchmarks.studies.credit --out runs/credit [--seeds 1 2 3] [--only outcome critic]
    python -m benchmarks.studies.credit --out runs/credit --record
    python -m benchmarks.studies.credit --out runs/more --restore --seeds 1 2 3 4
    python -m benchmarks.studies.credit --quick
    python -m benchmarks.studies.credit --recorded

All sources score the same recorded episodes; the reference is a Monte Carlo estimate (see
``recorded.py``). Each trains a team with stage 2, in equal steps on equal starts, and is tested on
the training templates with new parameters. Further arms separate credit, guidance and the grading
of negatives. Finished parts are not repeated. ``--record`` runs nothing and keeps the arms that
have all seeds. The record holds all results, but neither the recorded episodes nor weights:
``--restore`` writes those results that the folder lacks, and the study goes on from there. The last
line is JSON: the rows. The phone is simulated, critic and adversary are scripted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from benchmarks.studies.credit.plan import ARMS, QUICK, SOURCES, Plan, Source
from benchmarks.studies.options import parsed, study_options
from benchmarks.studies.restore import restore
from benchmarks.studies.struct_files import read_struct, write_struct
from benchmarks.support.origin import Origin, origin
from benchmarks.support.records import read_record, write_record
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.script_runner import check_study, script

if TYPE_CHECKING:
    from benchmarks.studies.credit.report import Study

NAME = "credit"
_QUICK_ARMS = ("outcome", "critic", "states", "removed")
WITHOUT_MODEL = tuple(source for source in SOURCES if source != "learned")
"""The sources that need no language model."""


@script
def main() -> int:
    parser = study_options(__doc__, "quick", "record", "recorded", "restore")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--only", nargs="+", default=list(ARMS), metavar="ARM", help="only these")
    given = parsed(parser)
    unknown = set(given.only) - set(ARMS)
    if unknown:
        raise ConfigError(f"--only: expected {', '.join(ARMS)}, got {min(unknown)!r}")
    if given.out is None and not given.recorded and not given.quick:
        raise ConfigError("the study needs a folder: give --out FOLDER, or --recorded, or --quick")
    study = _study(given)
    if study is None:
        return 0
    from benchmarks.studies.credit.report import markdown, rows

    if given.record:
        write_record(NAME, study)
    found = rows(study)
    print(markdown(study, found))
    print(json.dumps(msgspec.to_builtins(found)))
    return 0


def _study(given: argparse.Namespace) -> Study | None:
    """The study that the options ask for; it is run where it has to be."""
    from benchmarks.studies.credit.report import Study

    if given.recorded:
        return read_record(NAME, Study)
    if given.quick:
        with tempfile.TemporaryDirectory() as folder:
            run(QUICK, Path(folder), _QUICK_ARMS, [1], WITHOUT_MODEL)
            return collected(QUICK, Path(folder))
    if given.restore:
        files = files_of(read_record(NAME, Study))
        restore(NAME, given.out, {"settings.json": Plan()}, files)
    if not given.record:
        run(Plan(), given.out, given.only, given.seeds)
        return collected(Plan(), given.out)
    return complete(collected(Plan(), given.out), given.seeds)


def run(
    plan: Plan,
    folder: Path,
    arms: Sequence[str],
    seeds: Sequence[int],
    sources: Sequence[Source] = tuple(SOURCES),
) -> None:
    """Run what is not finished: the recorded episodes first, then the cells, arm by arm.

    ``sources``: those that judge the recorded episodes.
    """
    from benchmarks.studies.credit.cells import tested, train
    from benchmarks.studies.credit.recorded import Recording
    from swarm_ui.nodes.models.tiny_agent.local_model import BASE_AGENT, LocalModel

    check_study(folder / "settings.json", plan)
    if not (folder / "origin.json").exists():
        write_struct(folder / "origin.json", origin("python -m benchmarks.studies.credit"))
    display = ProgressDisplay()
    base = folder / "base.json"
    if not base.exists():
        test, _ = tested(plan, LocalModel.load(BASE_AGENT), trained=False)
        write_struct(base, test)
    missing = [s for s in sources if not (folder / "judged" / f"{s}.json").exists()]
    if missing:
        recording = Recording(plan, folder / "recorded")
        asyncio.run(recording.load())
        for source in missing:
            judged = asyncio.run(recording.judge(source))
            write_struct(folder / "judged" / f"{source}.json", judged)
            print(f"judged: {source}, {judged.seconds} CPU-s", file=sys.stderr, flush=True)
    for name in arms:
        for seed in seeds:
            path = folder / "cells" / f"{name}-{seed}.json"
            if not path.exists():
                with display.bar(path.stem, plan.iterations + 1) as bar:
                    cell = train(plan, ARMS[name], seed, bar.update)
                write_struct(path, cell)


def files_of(study: Study) -> dict[str, Any]:
    """The files of the folder from which :func:`collected` makes this study."""
    found: dict[str, Any] = {
        "settings.json": study.plan,
        "origin.json": study.origin,
        "base.json": study.base,
        "recorded/recorded.json": study.recorded,
    }
    found |= {f"judged/{one.source}.json": one for one in study.judged}
    found |= {f"cells/{cell.arm}-{cell.seed}.json": cell for cell in study.cells}
    return {path: msgspec.to_builtins(each) for path, each in found.items()}


def complete(study: Study, seeds: list[int]) -> Study:
    """The study without the arms that lack one of the seeds."""
    found: dict[str, set[int]] = {}
    for cell in study.cells:
        found.setdefault(cell.arm, set()).add(cell.seed)
    kept = [cell for cell in study.cells if found[cell.arm] >= set(seeds)]
    return msgspec.structs.replace(study, cells=kept)


def collected(plan: Plan, folder: Path) -> Study:
    """The finished parts of the study in a folder.

    Raises:
        ConfigError: the folder has no study, one of other sizes, or one without any judged source.
    """
    from benchmarks.studies.credit.cells import Cell
    from benchmarks.studies.credit.recorded import Judged, Recorded
    from benchmarks.studies.credit.report import Study

    if not (folder / "recorded" / "recorded.json").exists() or not (folder / "base.json").exists():
        raise ConfigError(f"'{folder}' holds no study: run it first, without --record")
    check_study(folder / "settings.json", plan)
    judged = sorted(
        (read_struct(p, Judged) for p in folder.glob("judged/*.json")),
        key=lambda one: list(SOURCES).index(one.source),  # type: ignore[arg-type]
    )
    cells = sorted(
        (read_struct(p, Cell) for p in folder.glob("cells/*.json")),
        key=lambda cell: (list(ARMS).index(cell.arm), cell.seed),
    )
    return Study(
        origin=read_struct(folder / "origin.json", Origin),
        plan=plan,
        recorded=read_struct(folder / "recorded" / "recorded.json", Recorded),
        judged=judged,
        base=read_struct(folder / "base.json", tuple[float | None, ...]),
        cells=cells,
    )


if __name__ == "__main__":
    sys.exit(main())
