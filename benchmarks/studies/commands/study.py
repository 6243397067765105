"""The command line of a study whose cells are commands."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from benchmarks.records import read_record, write_record
from benchmarks.studies.commands.cells import Cell, perform, record_of
from benchmarks.studies.commands.report import StudyRecord, markdown, study_record
from benchmarks.studies.options import record_options
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.script_runner import check_study

Sizes = TypeVar("Sizes", bound=msgspec.Struct)


def study_parser(description: str, sizes: msgspec.Struct) -> argparse.ArgumentParser:
    """A parser with the options of every study, and one for each size.

    Args:
        description: the docstring of the study.
        sizes: the default sizes; their fields are numbers or texts.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="folder of the study")
    parser.add_argument("--only", nargs="+", default=[""], help="beginnings of names of cells")
    for name, value in msgspec.structs.asdict(sizes).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    parser.add_argument("--dry-run", action="store_true", help="list the cells and their cost")
    parser.add_argument("--summarise", action="store_true", help="print what is there as Markdown")
    record_options(parser, restore=False)
    parser.add_argument("--quick", action="store_true", help="within a minute")
    return parser


def run_study(
    name: str,
    given: argparse.Namespace,
    kind: type[Sizes],
    quick: Sizes,
    quick_cells: Sequence[str],
    plan: Callable[[Sizes, Path], list[Cell]],
) -> int:
    """Run the study with these options, and print the table and one line of JSON.

    Args:
        name: the name of the study, and of the file with its recorded table.
        given: the parsed options of :func:`study_parser`.
        kind: the record of sizes.
        quick: the sizes of ``--quick``; the texts among them come from the options.
        quick_cells: the cells of ``--quick``, by the beginnings of their names.
        plan: makes the cells from sizes and the folder of the study.

    Raises:
        ConfigError: no cell of that name, other settings than before, or a failed command.
    """
    if given.recorded:
        _print(read_record(name, StudyRecord))
        return 0
    if given.quick:
        texts = {n: v for n, v in vars(given).items() if isinstance(getattr(quick, n, None), str)}
        with tempfile.TemporaryDirectory() as folder:
            sizes = msgspec.structs.replace(quick, **texts)
            return _study(given, Path(folder), plan(sizes, Path(folder)), quick_cells, "")
    if given.out is None:
        raise ConfigError("--out FOLDER is needed (or --quick)")
    sizes = kind(**{name: getattr(given, name) for name in kind.__struct_fields__})
    if not (given.dry_run or given.summarise):
        check_study(given.out / "settings.json", sizes)
    kept = name if given.record else ""
    return _study(given, given.out, plan(sizes, given.out), given.only, kept)


def _study(given: Any, out: Path, cells: list[Cell], only: Sequence[str], kept: str) -> int:
    chosen = [cell for cell in cells if cell.name.startswith(tuple(only))]
    if not chosen:
        raise ConfigError(f"--only {' '.join(only)}: no cell has such a name; --dry-run lists all")
    if given.dry_run:
        return _list(out, chosen)
    if not given.summarise:
        _perform(out, cells, chosen)
    record = study_record(out, cells)
    _print(record)
    if kept:
        write_record(kept, record)
    return 0


def _print(record: StudyRecord) -> None:
    print(markdown(record.rows, list(dict.fromkeys(row.split for row in record.rows))))
    print(msgspec.json.encode({"rows": record.rows}).decode())


def _perform(out: Path, cells: list[Cell], chosen: list[Cell]) -> None:
    by_name = {each.name: each for each in cells}
    with ProgressDisplay().bar("study", len(chosen)) as bar:
        for done, cell in enumerate(chosen):
            bar.update(done, cell.name)
            if record_of(out, cell) is not None:
                continue
            missing = [name for name in cell.needs if record_of(out, by_name[name]) is None]
            if missing:
                raise ConfigError(
                    f"cell '{cell.name}' needs {', '.join(missing)}, which is not done; do it "
                    "first, or leave --only out"
                )
            perform(out, cell)


def _list(out: Path, chosen: list[Cell]) -> int:
    """Every cell with its estimated cost, before anything is started."""
    left = [cell for cell in chosen if record_of(out, cell) is None]
    for cell in chosen:
        done = "    " if cell in left else "done"
        print(f"{done} {cell.name:64}{cell.calls:>9,} calls {cell.hours:6.2f} h")
    calls, hours = sum(cell.calls for cell in left), sum(cell.hours for cell in left)
    print(f"{len(chosen)} cells; left: {calls:,} calls, about {hours:.1f} h on two cores")
    return 0
