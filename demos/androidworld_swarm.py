"""The main job: a team of agents learns to operate a phone, and acts on real web pages.

python demos/androidworld_swarm.py            # two to five minutes on two cores
python demos/androidworld_swarm.py --quick    # under 90 seconds
python demos/androidworld_swarm.py --help
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the folder of demos.base_agent

from demos.base_agent.stream import rehearsal_for
from swarm_ui.errors import SwarmError
from swarm_ui.experiment.demo.demo_run import DemoRun, open_run
from swarm_ui.experiment.demo.flows import (
    evaluate_only,
    learn_on_pages,
    learn_on_phone,
    learn_with_model,
)
from swarm_ui.experiment.demo.options import parse
from swarm_ui.experiment.stored import running
from swarm_ui.experiment.terminal import printable


def main() -> int:
    run: DemoRun | None = None
    try:
        run = open_run(
            parse(), rehearsal=rehearsal_for
        )  # checks all that the run needs before anything is written
        with running(run.directory):
            if run.settings.trains_model:
                report = asyncio.run(learn_with_model(run))
            elif run.settings.given_model or run.settings.env == "androidworld":
                report = asyncio.run(evaluate_only(run))
            elif run.settings.env == "miniwob":
                report = asyncio.run(learn_on_pages(run))
            else:
                report = asyncio.run(learn_on_phone(run))
    except SwarmError as error:
        text = printable(f"error: {' '.join(str(error).split())}{resume(run)}")
        print(text, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"stopped{resume(run)}", file=sys.stderr)
        return 130
    print(f"report: {report.resolve()}")
    return 0


def resume(run: DemoRun | None) -> str:
    """The text that names the command which continues a run."""
    if run is None:
        return ""
    return f"; continue with: python {sys.argv[0]} {run.resume}"


if __name__ == "__main__":
    sys.exit(main())
