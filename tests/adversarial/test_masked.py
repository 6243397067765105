"""A model cannot hide its failures, and nothing is concluded where faults masked too much."""

from __future__ import annotations

from pathlib import Path

from cli_world import LAMP, RIGHT, Shell

MOODY = """\
from cli_world import Lamp
from swarm_ui.errors import EnvironmentFault

class Moody(Lamp):
    '''Breaks in two of six episodes, and in their second attempts.'''

    count = 0

    async def reset(self, *, task, seed):
        type(self).count += 1
        if type(self).count <= 4:
            raise EnvironmentFault("the bulb is gone")
        return await super().reset(task=task, seed=seed)
"""


def test_lost_steps_are_printed_apart_from_masked_episodes(shell: Shell) -> None:
    Path("half.txt").write_text(f"{RIGHT}\nSorry, I cannot.\n", encoding="utf-8")
    line = f"eval {LAMP} -n 6 -j 1 -m script:half.txt env.max_steps=1"
    done = shell(f"{line} --json")
    (row,) = done.json["plans"]
    assert done.code == 0 and done.json["no_conclusion"] == []
    assert (row["solved"], row["lost"], row["masked"]) == (3, 3, 0)
    assert row["success"]["mean"] == 0.5, "what the model loses counts against it"
    assert "Lost: steps without a usable reply" in " ".join(shell(line).out.split())


def test_nothing_is_concluded_where_faults_masked_too_much(shell: Shell) -> None:
    for name in ("moody", "allowed"):
        Path(f"{name}.py").write_text(MOODY, encoding="utf-8")
    done = shell("eval moody:Moody light -n 6 -j 1 -m script:right.txt --json --out r")
    assert done.code == done.json["exit"] == 3 and done.json["ok"] is False
    assert done.json["success"] is None and done.json["no_conclusion"] == ["episodes"]
    assert done.json["plans"][0]["masked"] == 2 and done.json["plans"][0]["success"] is None
    said = " ".join(done.err.split())
    assert "2 of 6 episodes are masked, more than eval.max_masked 0.2" in said
    assert "swarm-ui eval --resume r --trust" in said
    shell(f"eval {LAMP} light -n 6 -j 1 -m script:wrong.txt --out b")
    (row,) = shell("compare r b --json").json["rows"]
    assert row["masked"] == 2 and row["difference"] is None and row["p"] is None
    again = shell("eval --resume r --trust --json")
    assert again.code == 0 and again.json["plans"][0]["masked"] == 0, "the masked are played again"
    more = "-n 6 -j 1 -m script:right.txt eval.max_masked=0.5 --json"
    allowed = shell(f"eval allowed:Moody light {more}")
    assert allowed.code == 0 and allowed.json["success"]["mean"] == 1.0
