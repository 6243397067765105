"""The command line of a study whose cells are commands."""

from __future__ import annotations

import argparse
import hashlib
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from benchmarks.studies.commands.cells import Cell, perform, record_of
from benchmarks.studies.commands.report import StudyRecord, markdown, study_record
from benchmarks.studies.kept_results import kept_results
from benchmarks.studies.options import study_options
from benchmarks.studies.restore import found_files, packed_files, recorded_files, restore
from benchmarks.support.records import read_record, record_path, write_record
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.script_runner import check_study
from swarm_ui.nodes.models.pretrained.catalogue import adapter_folder

_SETTINGS = "settings.json"
Sizes = TypeVar("Sizes", bound=msgspec.Struct)


def study_parser(description: str, sizes: msgspec.Struct) -> argparse.ArgumentParser:
    """A parser with the options of every study, and one for each size.

    Args:
        description: the docstring of the study.
        sizes: the default sizes; their fields are numbers or texts.
    """
    parser = study_options(description)
    parser.add_argument("--only", nargs="+", default=[""], help="beginnings of names of cells")
    for name, value in msgspec.structs.asdict(sizes).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    parser.add_argument("--dry-run", action="store_true", help="list the cells and their cost")
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
        quick: the sizes of ``--quick``; fields that are texts, such as a model's name, come from
            the options instead.
        quick_cells: the cells of ``--quick``, by the beginnings of their names.
        plan: makes the cells from sizes and the folder of the study.

    Raises:
        ConfigError: there is no such cell, the settings have changed, or a command failed.
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
    if given.restore:
        restore(name, given.out, {_SETTINGS: settings_of(sizes)})
    if not (given.dry_run or given.summarise):
        check_study(given.out / _SETTINGS, settings_of(sizes))
    kept = name if given.record else ""
    return _study(given, given.out, plan(sizes, given.out), given.only, kept)


def settings_of(sizes: msgspec.Struct) -> dict[str, Any]:
    """The settings that all cells of a study share: its sizes, with a hash in place of an adapter.

    An adapter of this package keeps its name when its weights change, and a folder may be moved.

    Raises:
        ConfigError: there is no such adapter.
    """
    settings = msgspec.structs.asdict(sizes)
    if adapter := settings.get("adapter"):
        try:
            weights = (adapter_folder(adapter) / "adapter_model.safetensors").read_bytes()
        except OSError as error:
            raise ConfigError(
                f"--adapter {adapter}: expected the folder of an adapter or the name of one in "
                f"this package, got {error.strerror or error}: '{error.filename}'"
            ) from error
        settings["adapter"] = f"sha256 {hashlib.sha256(weights).hexdigest()[:16]}"
    return settings


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
        files = kept_files(out, cells)
        record = with_recorded(kept, record, cells, files[_SETTINGS])
        write_record(kept, record, packed_files(files))
    return 0


def with_recorded(
    name: str, record: StudyRecord, cells: Sequence[Cell], settings: dict[str, Any]
) -> StudyRecord:
    """A study's results, and those recorded rows of its plan that its folder lacks.

    A folder may lack rows because a record of an earlier version held no cells to restore. Rows
    with other settings are not kept.
    """
    if not record_path(name).exists() or recorded_files(name).get(_SETTINGS) != settings:
        return record
    old = read_record(name, StudyRecord)
    order = {row: place for place, row in enumerate(dict.fromkeys(each.row for each in cells))}
    made = {(row.name, row.split) for row in record.rows}
    lacking = [r for r in old.rows if r.name in order and (r.name, r.split) not in made]
    names = {cell.name: place for place, cell in enumerate(cells)}
    done = {each.name for each in record.cells}
    earlier = [each for each in old.cells if each.name in names and each.name not in done]
    return StudyRecord(
        rows=sorted([*record.rows, *lacking], key=lambda row: order[row.name]),
        cells=sorted([*record.cells, *earlier], key=lambda each: names[each.name]),
    )


def kept_files(out: Path, cells: Sequence[Cell]) -> dict[str, Any]:
    """What the record of a study holds of its folder: settings, finished cells and outcomes."""
    done = [cell for cell in cells if record_of(out, cell) is not None]
    files = found_files(out, (_SETTINGS, *(f"records/{cell.name}.json" for cell in done)))
    found = {cell.name: kept_results(out / cell.name) for cell in done if cell.row}
    return files | {f"{name}/results.json": each for name, each in found.items() if each}


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
            lost = [name for name in cell.needs if not (out / name).exists()]
            if lost:
                raise ConfigError(
                    f"cell '{cell.name}' needs {', '.join(lost)}, which was restored from a record "
                    f"without its files; delete '{out / 'records'}/{lost[0]}.json', and the same "
                    "command makes it again"
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
