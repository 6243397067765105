"""``swarm-ui eval``: agents act in a task, a suite or a split; success with intervals."""

from __future__ import annotations

from pathlib import Path

from swarm_ui.cli import flags
from swarm_ui.cli.outcome import perform
from swarm_ui.experiment.comparing import arms_of


@flags.command(
    flags.ENVIRONMENT,
    flags.option("split", list[str], "NAME", "split of the tasks, such as new parameters or new "
                 "apps (default: the first of the environment); repeatable",
                 setting="eval.split"),
    flags.option("seed", list[int], "N", "seed for choosing the episodes; repeatable",
                 setting="eval.seed"),
    flags.option("episodes", int, "N", "number of episodes (default: 20, or one for each named "
                 "task)", "-n", setting="eval.episodes", least=1),
    flags.MODEL, flags.URL, flags.ADAPTERS, flags.AGENTS, flags.ROUNDS, flags.EDGES,
    flags.option("against", Path, "RUN", "compare with this run, episode by episode"),
    flags.option("fail_under", float, "SHARE", "exit with 1 if a smaller share is solved (default: "
                 "1 for one episode, else 0)", setting="eval.fail_under", panel=flags.HOW),
    flags.option("concurrency", int, "N", "number of concurrent episodes in this process", "-j",
                 setting="place.concurrency"),
    flags.ON, flags.OUT, *flags.ENDING,
    defaults={"eval.seed": 0, "model.name": "base", "team.agents": 1, "team.rounds": 1,
              "team.edges": "random", "place.concurrency": 8},
)  # fmt: skip
def evaluate(arguments: flags.Arguments) -> int:
    """Play one task, a suite or a split, and measure success with 95 % intervals.

    With the folder of a training in the place of ENV, its trained team acts. Equal settings give
    equal episodes, so runs can be compared.
    Example: [bold]swarm-ui eval phone contacts-add --agents 4[/] or
    [bold]swarm-ui eval phone --split parameters --split apps -n 100 team.temperature=0.5[/]
    """
    against = arguments["against"]
    if against is not None:
        arms_of(str(against))  # an unreadable run is reported before anything is played
    return perform(arguments)
