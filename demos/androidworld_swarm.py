"""The main job: a team of agents learns to operate a phone, and acts on real web pages.

python demos/androidworld_swarm.py            # two to five minutes on two cores
python demos/androidworld_swarm.py --quick    # under 90 seconds
python demos/androidworld_swarm.py --help
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from swarm_ui.errors import SwarmError
from swarm_ui.experiment.console import Screen
from swarm_ui.experiment.demo_options import Request, parse
from swarm_ui.experiment.session import Session, check_learning, check_out, opened, wanted
from swarm_ui.experiment.settings import Settings
from swarm_ui.storage.run_directory import RunDirectory


def check(settings: Settings) -> None:
    """Whatever may be missing is found here, before anything is written."""
    if settings.env == "phone":
        from swarm_ui.experiment import phone_jobs

        phone_jobs.check_tasks(settings)
    elif settings.env == "miniwob":
        from swarm_ui.experiment import miniwob_jobs

        miniwob_jobs.checked_browser()
        miniwob_jobs.check_tasks(settings)
    else:
        from swarm_ui.experiment.endpoint_run import device_jobs

        device_jobs(settings)
    if settings.over_endpoint:
        from swarm_ui.experiment import endpoint_run

        asyncio.run(endpoint_run.check(settings))
    else:
        check_learning(settings)


async def flow(session: Session) -> Path:
    """The run itself; returns the report's path."""
    settings = session.settings
    if settings.over_endpoint:
        from swarm_ui.experiment.endpoint_run import endpoint_run

        return await endpoint_run(session)
    if settings.env == "miniwob":
        from swarm_ui.experiment.miniwob_run import pages_run

        return await pages_run(session)
    if settings.env == "androidworld":
        from swarm_ui.experiment.androidworld_run import device_run

        return await device_run(session)
    from swarm_ui.experiment.phone_run import phone_run

    return await phone_run(session)


def run(request: Request, begun: list[RunDirectory]) -> Path:
    """Check, begin or take up the run, and see it through.

    Args:
        begun: the run is put in here as soon as there is one.
    """
    settings, existing = wanted(request)
    check_out(request.out)
    screen = Screen()
    check(settings)
    session = opened(request, settings, existing, screen)
    begun.append(session.run)
    if settings.from_scratch:
        from swarm_ui.experiment.stage1_run import train_from_scratch

        train_from_scratch(session)
    with screen:
        return asyncio.run(flow(session))


def main() -> int:
    begun: list[RunDirectory] = []
    try:
        report = run(parse(), begun)
    except SwarmError as error:
        print(f"error: {' '.join(str(error).split())}{_resume(begun)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"stopped{_resume(begun)}", file=sys.stderr)
        return 130
    print(f"report: {report.resolve()}")
    return 0


def _resume(begun: list[RunDirectory]) -> str:
    if not begun:
        return ""
    return f"; go on with: python {sys.argv[0]} --resume {begun[0].path}"


if __name__ == "__main__":
    sys.exit(main())
