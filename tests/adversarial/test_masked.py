"""A model cannot hide its failures, and nothing is concluded where faults masked too much."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_world import Shell, shell  # noqa: F401

WORLD = """\
from cli_world import Lamp
from swarm_ui.errors import EnvironmentFault

class Moody(Lamp):
    '''Breaks in some episodes.'''

    tasks = ("light",)
    count = 0

    async def reset(self, *, task, seed):
        type(self).count += 1
        self.broken = type(self).count in BROKEN
        return await super().reset(task=task, seed=seed)

    async def step(self, action):
        if self.broken:
            raise EnvironmentFault("the bulb is gone")
        return await super().step(action)
"""


def moody(name: str, *broken: int) -> str:
    """A module with an environment that breaks in these episodes, and in their second attempts."""
    Path(f"{name}.py").write_text(f"BROKEN = {broken}\n{WORLD}", encoding="utf-8")
    return f"{name}:Moody"


@pytest.fixture
def talker(shell: Shell) -> str:  # noqa: F811
    """A model that says something unusable in every second reply."""
    text = 'Action: {"action_type": "click", "target": "on", "index": 0}\n'
    Path("half.txt").write_text(f"{text}Sorry, I cannot.\n", encoding="utf-8")
    return "script:half.txt"


def test_lost_steps_are_printed_apart_from_masked_episodes(shell: Shell, talker: str) -> None:  # noqa: F811
    line = f"eval {moody('calm')} -n 6 -j 1 -m {talker} env.max_steps=1"
    done = shell(f"{line} --json")
    (row,) = done.json["plans"]
    assert done.code == 0 and done.json["no_conclusion"] == []
    assert (row["solved"], row["lost"], row["masked"]) == (3, 3, 0)
    assert row["success"]["mean"] == 0.5, "what the model loses counts against it"
    assert "Lost: steps without a usable reply" in " ".join(shell(line).out.split())


def test_nothing_is_concluded_where_faults_masked_too_much(shell: Shell) -> None:  # noqa: F811
    # A fault is tried once more: four attempts lose two of six episodes.
    name = moody("moody", 1, 2, 3, 4)
    line = f"eval {name} -n 6 -j 1 -m script:right.txt --fail-under 0.1"
    done = shell(f"{line} --json --out r")
    assert done.code == done.json["exit"] == 3 and done.json["ok"] is False
    assert done.json["success"] is None and done.json["no_conclusion"] == ["episodes"]
    assert done.json["plans"][0]["masked"] == 2 and done.json["plans"][0]["success"] is None
    said = " ".join(done.err.split())
    assert "2 of 6 episodes are masked, more than eval.max_masked 0.2" in said
    assert "swarm-ui eval --resume r --trust" in said
    again = shell("eval --resume r --trust --json")
    assert again.code == 0 and again.json["plans"][0]["masked"] == 0, "the masked are played again"


def test_a_comparison_of_masked_episodes_concludes_nothing(shell: Shell) -> None:  # noqa: F811
    name = moody("masked", 1, 2, 3, 4)
    shell(f"eval {name} -n 6 -j 1 -m script:right.txt --out a")
    shell("eval cli_world:Lamp light -n 6 -j 1 -m script:wrong.txt --out b")
    (row,) = shell("compare a b --json").json["rows"]
    assert row["masked"] == 2 and row["difference"] is None and row["p"] is None
    assert shell("compare a b").code == 0


def test_more_may_be_allowed(shell: Shell) -> None:  # noqa: F811
    name = moody("allowed", 1, 2, 3, 4)
    done = shell(f"eval {name} -n 6 -j 1 -m script:right.txt eval.max_masked=0.5 --json")
    assert done.code == 0 and done.json["success"]["mean"] == 1.0
