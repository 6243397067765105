"""``swarm-ui credit``: critics, compared on the episodes of a run."""

from __future__ import annotations

import asyncio
import functools
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from swarm_ui.cli import flags
from swarm_ui.cli.out_files import expect_folder_place, writing
from swarm_ui.cli.output import Output
from swarm_ui.experiment.user_code import callable_of, made_by, user_environment


def credit(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="a run's folder, or a trace file")],
    env: Annotated[str | None, typer.Option(metavar="MODULE:NAME", help="factory of the "
                   "environment, or a plug-in; default: the phone, if the run was played "
                   "there")] = None,
    replay: Annotated[bool, flags.declare("--replay", help="also counterfactual and Shapley "
                      "credit, which call the models again", panel="")] = False,
    critics: Annotated[list[str] | None, typer.Option(metavar="MODULE:NAME", help="function that "
                         "returns more critics; repeatable")] = None,
    reference: Annotated[str, typer.Option(metavar="NAME", help="critic used as the reference; "
                         "default: the scripted critic, or else the recorded credit")] = "",
    episodes: Annotated[int | None, typer.Option("--episodes", "-n", metavar="N", min=1,
                        help="only the first N (default: all)")] = None,
    trust: flags.Trust = False,
    plots: Annotated[Path | None, typer.Option(metavar="FOLDER", help="write two plots")] = None,
    json: flags.Json = False,
) -> int:  # fmt: skip
    """Compare critics on the recorded episodes of a run.

    Shows how often each agrees with the reference, AUC, rank correlation, calls, calibration.
    Example: [bold]swarm-ui credit runs/demo --plots plots[/]
    """
    output = Output(machine=json)
    expect_folder_place(plots)  # before calls are made
    more = [critic for place in critics or () for critic in made_by(place)]
    trusted = trust if replay else None
    found = asyncio.run(_compared(run, env, trusted, more, reference, episodes))
    for made in found.tables():
        output.show(made)
    if plots is not None:
        with writing(plots):
            found.plot(plots)
        output.say(f"wrote two plots to {plots}")
    return output.done(**msgspec.to_builtins(found, str_keys=True))


async def _compared(
    run: Path,
    env: str | None,
    trusted: bool | None,
    more: list[Any],
    reference: str,
    most: int | None,
) -> Any:
    """The comparison. ``trusted``: whether the run's model may be opened; ``None``: not needed."""
    from swarm_ui.optim.credit.compare import compare_recorded
    from swarm_ui.trace.jsonl import iter_jsonl

    files = sorted((run / "traces").glob("*.jsonl")) if run.is_dir() else [run]
    whole = not run.is_dir()  # a run may have been killed while it wrote a line
    found = [episode for file in files for episode in iter_jsonl(file, whole=whole)][:most]
    if env is None and {e.environment for e in found} == {"phone (simulated)"}:
        env = "swarm_ui.environments.phone:PhoneEnvironment"
    async with AsyncExitStack() as stack:
        graph = None if trusted is None else await _team(run, stack, trusted)
        make = None
        if env is not None:
            callable_of("environments", env)  # before anything is read
            make = functools.partial(user_environment, env)
        return await compare_recorded(
            found, make_environment=make, graph=graph, critics=more, reference=reference
        )


async def _team(run: Path, stack: AsyncExitStack, trusted: bool) -> Any:
    """The team of a run of ``swarm-ui``, whose model is closed with the stack."""
    from swarm_ui.experiment.models import adapter_names, open_model
    from swarm_ui.experiment.permissions import expect_trust
    from swarm_ui.experiment.runs import configuration_of
    from swarm_ui.experiment.teams import arm_of

    config = configuration_of(run)
    expect_trust(run, config, (), trusted=trusted, plays=False)
    model = await stack.enter_async_context(open_model(config.model))
    return arm_of(config.team, adapter_names(config.model, config.team.agents)).graph(model)
