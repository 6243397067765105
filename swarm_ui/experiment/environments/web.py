"""Tasks on web sites of your own, in a real browser that reaches only their hosts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from swarm_ui.environments.web import (
    INSTALL_HINT,
    WebBrowser,
    WebEnvironment,
    WebView,
    find_browser,
    webarena_tasks,
)
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import EnvironmentSection, Finding
from swarm_ui.experiment.environments.spec import EnvironmentSpec, OpenEnvironment, Opening


@asynccontextmanager
async def _open(section: EnvironmentSection) -> Opening:
    tasks, unsupported = webarena_tasks(Path(section.data))
    if not tasks:
        raise ConfigError(f"{section.data}: no task can be judged: {dict(unsupported)}")
    view = WebView(screenshots=section.screenshots)
    async with WebBrowser([task.url for task in tasks.values()]) as browser:
        yield OpenEnvironment(lambda: WebEnvironment(tasks=tasks, browser=browser, view=view))


def _findings(section: EnvironmentSection) -> Iterator[Finding]:
    if find_browser() is None:
        yield ("environment", "name"), INSTALL_HINT
    elif not section.data:
        yield ("environment", "data"), "web needs a file of tasks: --data TASKS.json"


SPEC = EnvironmentSpec(
    name="web",
    label="Web sites in a real browser",
    open=_open,
    findings=_findings,
    reads=("data", "screenshots"),
    resource="browser",
)
