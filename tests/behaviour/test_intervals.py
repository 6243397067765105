"""One interval for one comparison, from Python and from the command line."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
from cli_world import Shell

from swarm_ui import Episode, write_jsonl
from swarm_ui.stats import Interval, clustered_difference, outcomes, paired_difference

TEMPLATES = 3
EACH = 30


def played(solved: Callable[[int, int], bool]) -> list[Episode]:
    """Ninety episodes of three templates; ``solved`` by template and seed."""
    return [
        Episode(environment="e", task=f"t{t}", seed=k, success=solved(t, k))
        for t in range(TEMPLATES)
        for k in range(EACH)
    ]


def from_command(shell: Shell, ours: Sequence[Episode], theirs: Sequence[Episode]) -> Interval:
    """The interval of ``swarm-ui compare``."""
    write_jsonl(shell.folder / "a.jsonl", ours)
    write_jsonl(shell.folder / "b.jsonl", theirs)
    found = shell("compare a.jsonl b.jsonl --json").json["rows"][0]["difference"]
    return Interval(mean=found["mean"], low=found["low"], high=found["high"], n=found["n"])


def from_python(ours: Sequence[Episode], theirs: Sequence[Episode]) -> Interval | None:
    """The interval of a program."""
    return paired_difference(outcomes(ours), outcomes(theirs))


@pytest.mark.parametrize(
    "solved",
    [
        pytest.param(lambda t, k: k % 2 == 0, id="no episode differs"),
        pytest.param(lambda t, k: t == 0 or k % 2 == 0, id="one template differs"),
        pytest.param(lambda t, k: k % 3 == t, id="all templates differ"),
    ],
)
def test_a_program_and_the_command_give_the_same_interval(
    shell: Shell, solved: Callable[[int, int], bool]
) -> None:
    ours, theirs = played(solved), played(lambda t, k: k % 2 == 0)
    assert from_python(ours, theirs) == from_command(shell, ours, theirs)


def test_equal_episodes_of_three_templates_are_three_observations() -> None:
    same = played(lambda t, k: True)
    found = from_python(same, same)
    z2 = 1.959964**2
    assert found is not None
    assert (found.mean, found.n) == (0.0, 90)
    assert found.high == pytest.approx(z2 / (TEMPLATES + z2))


def test_one_template_that_differs_says_less_than_scattered_episodes() -> None:
    base = played(lambda t, k: False)
    template = from_python(played(lambda t, k: t == 0), base)
    scattered = from_python(played(lambda t, k: k % 3 == 0), base)
    assert template is not None and scattered is not None
    assert math.isclose(template.mean, scattered.mean)
    assert template.high - template.low > 2 * (scattered.high - scattered.low)


def test_several_training_runs_and_scores_have_the_bootstrap() -> None:
    ours = [o for run in range(3) for o in outcomes(played(lambda t, k: (t + k) % 2 == 0), run)]
    theirs = [o for run in range(3) for o in outcomes(played(lambda t, k: k % 3 == 0), run)]
    assert paired_difference(ours, theirs) == clustered_difference(ours, theirs)
