"""A real language model through stage 1 and stage 2, on the splits of the small agent.

    swarm-ui models pull smollm2
    python -m benchmarks.studies.real_model --out runs/real_model --dry-run
    python -m benchmarks.studies.real_model --out runs/real_model
    python -m benchmarks.studies.real_model --out runs/real_model --summarise

Every cell is one ``swarm-ui`` command in a process of its own, and can be typed by hand. A cell
that is done is not done again, and one that was interrupted goes on, so the same command can be
repeated on another day. ``--only`` chooses cells by the beginning of their names. The phone is
simulated, and the critic "scripted" knows the solution; "learned" does not.

Every row starts from one stage 1, the adapter of this package or another (``--adapter``). A vote of
four agents with that one adapter is also "one agent at the team's calls". ``--quick`` plays two
episodes of three rows; the figures mean nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from benchmarks.studies.real_model.cells import perform, record_of
from benchmarks.studies.real_model.plan import Cell, Plan
from benchmarks.studies.real_model.report import document, markdown, rows
from benchmarks.studies.real_model.sizes import QUICK, Sizes
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.script_runner import check_study, script

_QUICK_CELLS = ("base-agent", "stage-1-one-agent", "stage-1-vote")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    normal = Sizes()
    parser.add_argument("--out", type=Path, help="folder of the study")
    parser.add_argument("--model", default=normal.model, help="name or folder of the model")
    parser.add_argument("--critic", type=Path, help="folder of a learned critic")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--only", nargs="+", default=[""], help="beginnings of names of cells")
    parser.add_argument("--adapter", default=normal.adapter, help="of stage 1: name or folder")
    for name, value in _plain(normal).items():
        if not isinstance(value, str):
            flag = f"--{name.replace('_', '-')}"
            parser.add_argument(flag, type=type(value), default=value)
    parser.add_argument("--dry-run", action="store_true", help="list the cells and their cost")
    parser.add_argument("--summarise", action="store_true", help="print what is there as Markdown")
    parser.add_argument("--quick", action="store_true", help="within a minute")
    given = parser.parse_args()
    if given.out is None and not given.quick:
        parser.error("--out FOLDER is needed (or --quick)")
    return given


@script
def main() -> int:
    given = _arguments()
    if given.quick:
        with tempfile.TemporaryDirectory() as folder:
            sizes = Sizes(**{**_plain(QUICK), "model": given.model, "adapter": given.adapter})
            return _study(given, Plan(sizes, Path(folder), given.seeds[:1], None), _QUICK_CELLS)
    sizes = Sizes(**{name: getattr(given, name) for name in Sizes.__struct_fields__})
    plan = Plan(sizes, given.out, given.seeds, given.critic)
    if not given.dry_run:
        check_study(given.out / "settings.json", sizes)
    return _study(given, plan, given.only)


def _study(given: argparse.Namespace, plan: Plan, only: tuple[str, ...] | list[str]) -> int:
    cells = plan.cells()
    chosen = [cell for cell in cells if cell.name.startswith(tuple(only))]
    if not chosen:
        raise ConfigError(f"--only {' '.join(only)}: no cell begins so; --dry-run lists them")
    if given.dry_run:
        return _list(plan.out, chosen)
    if not given.summarise:
        _perform(plan.out, cells, chosen)
    found = rows(plan.out, cells)
    print(markdown(found, list(dict.fromkeys(row.split for row in found))))
    print(json.dumps(document(found)))
    return 0


def _perform(out: Path, cells: list[Cell], chosen: list[Cell]) -> None:
    display = ProgressDisplay()
    with display.bar("real model", len(chosen)) as bar:
        for done, cell in enumerate(chosen):
            bar.update(done, cell.name)
            if record_of(out, cell) is None:
                by_name = {each.name: each for each in cells}
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


def _plain(sizes: Sizes) -> dict[str, object]:
    return {name: getattr(sizes, name) for name in Sizes.__struct_fields__}


if __name__ == "__main__":
    sys.exit(main())
