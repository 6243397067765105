"""AndroidWorld in processes of its own: faults stay in one, and none is left behind."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import android_forest
import pytest

from swarm_ui.action import Action
from swarm_ui.environments.androidworld.environment import AndroidWorldProcess, Emulator
from swarm_ui.errors import ConfigError, EnvironmentFault

CLICK = Action(action_type="click", index=0)
DONE = Action(action_type="status", goal_status="complete")


@pytest.fixture
def emulators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Emulator]]:
    """Two that listen, and a stand-in for upstream's package."""
    support = Path(android_forest.__file__).parent
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(support / "upstream"), str(support)]))
    held = [socket.create_server(("localhost", 0)) for _ in range(4)]
    ports = [server.getsockname()[1] for server in held]
    yield [Emulator(console_port=a, grpc_port=b) for a, b in (ports[:2], ports[2:])]
    for server in held:
        server.close()


def alive(process: int | None) -> bool:
    assert process is not None
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


async def test_an_episode_through_the_pipe(emulators: list[Emulator], tmp_path: Path) -> None:
    log = tmp_path / "log"
    env = AndroidWorldProcess(emulators[0], pause=0.0, log=log)
    screen = await env.reset(task="WifiOn", seed=1)
    process = env.process_id
    assert env.tasks == ("WifiOn",)
    assert screen.goal.startswith("Turn on Wi-Fi")
    assert screen.elements[0].label == f"Wi-Fi of {emulators[0].console_port}"
    step = await env.step(CLICK)
    assert step.observation.elements[0].checked is True
    assert len(step.observation.history) == 1
    step = await env.step(DONE)
    assert (step.reward, step.terminated) == (1.0, True)
    with pytest.raises(EnvironmentFault, match="no episode is running"):
        await env.step(CLICK)
    with pytest.raises(ConfigError, match="no task 'WifiOff'"):
        await env.reset(task="WifiOff", seed=1)
    await env.close()
    await env.close()
    assert not alive(process)
    said = log.read_text()
    assert "noise on the output" in said
    folder = Path(said.split()[-1])  # temporary files are the process's own, and gone with it
    assert folder != Path(tempfile.gettempdir()) and not folder.exists()


@pytest.mark.parametrize(
    ("app", "why"),
    [
        ("broken", "device offline"),
        ("exit", "the process ended in 'step'"),
        ("hang", "took more than"),
    ],
)
async def test_what_breaks_is_a_fault_and_the_next_reset_works(
    emulators: list[Emulator], app: str, why: str
) -> None:
    env = AndroidWorldProcess(emulators[0], pause=0.0, step_timeout=0.3 if app == "hang" else 60.0)
    await env.reset(task="WifiOn", seed=1)
    process = env.process_id
    with pytest.raises(EnvironmentFault, match=why):
        await env.step(Action(action_type="open_app", app_name=app))
    assert alive(process) == (app == "broken")
    with pytest.raises(EnvironmentFault, match="no episode is running"):
        await env.step(CLICK)
    assert (await env.reset(task="WifiOn", seed=1)).elements
    await env.close()


async def test_a_missing_package_is_the_callers_to_install(
    emulators: list[Emulator], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "")
    env = AndroidWorldProcess(emulators[0], pause=0.0)
    with pytest.raises(ConfigError, match=r"github\.com/google-research/android_world"):
        await env.reset(task="WifiOn", seed=1)
    await env.close()
    nowhere = AndroidWorldProcess(emulators[0], pause=0.0, python="/no/such/python")
    with pytest.raises(ConfigError, match="/no/such/python"):
        await nowhere.reset(task="WifiOn", seed=1)
