"""Split facts with a language model: does it learn to send values, and to use them?

    swarm-ui models pull smollm2
    python -m benchmarks.studies.split_model --out runs/split_model --dry-run
    python -m benchmarks.studies.split_model --out runs/split_model
    python -m benchmarks.studies.split_model --out runs/split_model --record
    python -m benchmarks.studies.split_model --out runs/more --restore --summarise
    python -m benchmarks.studies.split_model --recorded

The agents of the corpus are scripted, those of the test episodes are one language model with one
adapter: it is trained on what the scripted team saw, heard and said, on training templates with
training parameters. Corpus and training are ``swarm-ui`` commands in processes of their own; the
same command goes on with what is not done. The record holds what the tables need of each episode,
without traces and weights; ``--restore`` writes it where ``--out`` lacks it. The phone is
simulated. The last line is JSON.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchmarks.studies.commands.cells import perform, record_of
from benchmarks.studies.commands.study import settings_of, study_parser
from benchmarks.studies.options import parsed
from benchmarks.studies.restore import packed_files, restore
from benchmarks.studies.split_model.plan import QUICK, SETTINGS_FILE, Sizes, training_cells
from benchmarks.support.origin import origin
from benchmarks.support.records import read_record, write_record
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.script_runner import check_study, script

if TYPE_CHECKING:
    from benchmarks.studies.split_model.report import Study

NAME = "split_model"
_PROGRAM = "python -m benchmarks.studies.split_model"


@script
def main() -> int:
    given = parsed(study_parser(__doc__ or "", Sizes()))
    from benchmarks.studies.split_model.report import Study

    if given.recorded:
        return _print(read_record(NAME, Study))
    if given.quick:
        sizes = msgspec.structs.replace(QUICK, model=given.model, adapter=given.adapter)
        with tempfile.TemporaryDirectory() as folder:
            return _print(_run(sizes, Path(folder), ("no talk", "needed")))
    if given.out is None:
        raise ConfigError("--out FOLDER is needed (or --quick)")
    sizes = Sizes(**{name: getattr(given, name) for name in Sizes.__struct_fields__})
    if given.restore:
        restore(NAME, given.out, {SETTINGS_FILE: settings_of(sizes)})
    if given.dry_run:
        return _plan(sizes, given.out)
    if not given.summarise:
        check_study(given.out / SETTINGS_FILE, settings_of(sizes))
        found = _run(sizes, given.out, given.only)
    else:
        found = _summary(sizes, given.out)
    if given.record:
        from benchmarks.studies.split_model.report import kept_files

        write_record(NAME, found, packed_files(kept_files(sizes, given.out)))
    return _print(found)


def _run(sizes: Sizes, out: Path, only: Sequence[str]) -> Study:
    """Train, then play the arms whose names begin with one of ``only``."""
    from benchmarks.studies.split_model.play import ARMS, TEMPLATES, Player, open_model

    for cell in training_cells(sizes, out):
        if record_of(out, cell) is None:
            perform(out, cell)
    reader = Player(sizes, out, None)
    chosen = [(arm, t) for t in TEMPLATES for arm in ARMS if arm.startswith(tuple(only))]
    todo = [key for key in chosen if reader.left(*key)]
    if todo:
        player = Player(sizes, out, open_model(sizes, out))
        with ProgressDisplay().bar("arms", len(todo)) as bar:
            for done, (arm, templates) in enumerate(todo):
                bar.update(done, f"{arm}, {templates}")
                player.play(arm, templates)
    return _summary(sizes, out)


def _summary(sizes: Sizes, out: Path) -> Study:
    from benchmarks.studies.split_model.report import study

    return study(origin(_PROGRAM), sizes, out)


def _plan(sizes: Sizes, out: Path) -> int:
    """What is left, before anything is started."""
    from benchmarks.studies.split_model.play import ARMS, TEMPLATES, Player

    reader = Player(sizes, out, None)
    for cell in training_cells(sizes, out):
        state = "left" if record_of(out, cell) is None else "done"
        print(f"{state} {cell.name:44} {cell.hours:5.2f} h on two idle cores")
    for arm in ARMS:
        for templates in TEMPLATES:
            left = len(reader.left(arm, templates))
            print(f"{'left' if left else 'done'} {arm + ', ' + templates:44} {left:5} episodes")
    return 0


def _print(found: Study) -> int:
    from benchmarks.studies.split_model.report import markdown

    print(markdown(found))
    print(msgspec.json.encode({"rows": found.rows}).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
