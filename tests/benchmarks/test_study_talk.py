"""What the talk study says of made-up decisions, and how scripts of studies end."""

from __future__ import annotations

import demo_runs  # noqa: F401  (puts demos/ on the path)
import pytest

from benchmarks.studies.talk.__main__ import Seen, difference, figures
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.script_runner import script

ALIKE = Seen(right=[1.0, 1.0], alike=True, vote=1.0)
SPLIT = Seen(right=[1.0, 0.0], alike=False, vote=1.0)
WRONG = Seen(right=[0.0, 0.0], alike=True, vote=0.0)


def test_shares_are_of_decisions_and_a_split_is_the_silent_team_s() -> None:
    steps = [(SPLIT, WRONG), (ALIKE, ALIKE), (WRONG, SPLIT)]
    silent, talking = figures(steps, 0), figures(steps, 1)
    assert silent == {"one": 0.5, "any": 2 / 3, "same": 2 / 3, "vote": 2 / 3, "split": 1.0}
    assert talking == {"one": 0.5, "any": 2 / 3, "same": 2 / 3, "vote": 2 / 3, "split": 0.0}


def test_differences_are_paired_by_episode() -> None:
    found = difference([[(SPLIT, WRONG)], [(SPLIT, ALIKE)]])
    assert found["vote"] == (-0.5, -1.0, 0.0)
    assert found["same"] == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ConfigError("no such run"), 2, "error: no such run\n"),
        (KeyboardInterrupt(), 130, "stopped; the same command continues\n"),
    ],
)
def test_a_script_that_cannot_go_on_says_so_and_with_which_code(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> int:
        raise error

    assert script(fails)() == code
    assert capsys.readouterr().err == said
    assert script(lambda: 0)() == 0
