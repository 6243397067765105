"""Effect of varied training environments on a language model, with equally many samples.

    python -m benchmarks.studies.diversity --out runs/diversity --dry-run
    python -m benchmarks.studies.diversity --out runs/diversity
    python -m benchmarks.studies.diversity --out runs/diversity --summarise

A stage 1 adapter of SmolLM2 is trained on steps of the simulated phone's training templates. In
most arms half of the samples come from phones with invented apps instead: 8, 32 or 128 devices,
many or few wordings of goals, with or without samples of levels 1 and 2; the number of samples is
always the same. Each adapter is tested on the phone with new parameters, new templates and new
apps, two of them also without constrained decoding. Every cell is one command. Finished cells are
not repeated. ``--quick`` shows that every kind of cell works; the figures mean nothing.
"""

from __future__ import annotations

import sys

from benchmarks.studies.commands.study import run_study, study_parser
from benchmarks.studies.diversity.plan import QUICK, Sizes, cells
from benchmarks.studies.options import parsed
from swarm_ui.experiment.script_runner import script

_QUICK_CELLS = ("corpus-8-", "trained-8-", "test-8-")


@script
def main() -> int:
    given = parsed(study_parser(__doc__ or "", Sizes()))
    return run_study("diversity", given, Sizes, QUICK, _QUICK_CELLS, cells)


if __name__ == "__main__":
    sys.exit(main())
