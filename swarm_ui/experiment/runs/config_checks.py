"""Checks of a configuration before anything is written or loaded."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import Config, Draft, Finding, ModelSection, checked
from swarm_ui.experiment.environments import ENVIRONMENTS, environment_findings
from swarm_ui.experiment.models import IN_PROCESS, kind_of, learned_adapters, model_findings
from swarm_ui.experiment.placement.place import place_findings
from swarm_ui.experiment.plugins.run_loggers import logger_findings
from swarm_ui.experiment.runs.unused_settings import unused_findings
from swarm_ui.experiment.runs.unused_training import unused_in_training
from swarm_ui.experiment.teams import team_findings
from swarm_ui.experiment.training.acting_models import acting_findings
from swarm_ui.experiment.training.roles import critic_findings

TRAINING_TEAM = {"agents": 4, "rounds": 3, "temperature": 0.8, "views": "shuffle"}
"""Defaults of a team that learns."""
_RUNS = ("environment", "model", "team", "run", "ray", "critic")
"""The sections of the configuration that a run reads."""
_GRAPHS = 4
"""Default of ``[train] graphs`` where edges are learned."""


def check_config(
    draft: Draft, *, train: bool = False, splits: Sequence[str] = (), seeds: Sequence[int] = ()
) -> Config:
    """The configuration, checked before anything is written or loaded.

    Args:
        draft: the settings.
        train: they are those of a training.
        splits, seeds: used instead of those of the settings.

    Raises:
        ConfigError: all its mistakes.
    """

    def find(config: Config, valid: Collection[str]) -> Iterator[Finding]:
        yield from config_findings(config, valid, draft, train=train, splits=splits, seeds=seeds)
        if "run" in valid and config.run.out:
            out = config.run.out
            if os.path.exists(out) and (not os.path.isdir(out) or os.listdir(out)):
                problem = (
                    f"'{out}' exists and is not empty; choose another, or continue the run "
                    "with --resume"
                )
                yield ("run", "out"), problem

    return checked(draft, train=train, find=find)


def config_findings(
    config: Config,
    valid: Collection[str],
    draft: Draft,
    *,
    train: bool,
    splits: Sequence[str] = (),
    seeds: Sequence[int] = (),
) -> Iterator[Finding]:
    """Mistakes in the settings of a run, whether it has begun or not.

    ``valid``: the sections whose types are right; for the others see :func:`check_config`.
    """
    if "environment" in valid:
        yield from environment_findings(config.environment, splits)
    if "model" in valid:
        agents = config.team.agents if "team" in valid else 0
        learned = learned_adapters(config) if train and agents else ()
        yield from model_findings(config.model, agents, learned)
        if train:
            yield from _unfit_to_learn(config.model)
    if train and {"critic", "environment"} <= set(valid):
        yield from critic_findings(config)
    if "model" in valid and config.model.actor and not train:
        yield ("model", "actor"), "an actor is for training; name an endpoint with --url"
    if "team" in valid:
        yield from team_findings(config.team)
        if not train:
            yield from _decided_by_task(config, draft)
    if "run" in valid:
        yield from logger_findings(config.run.log)
        yield from place_findings(config)
        if train and "model" in valid and "critic" in valid:
            yield from acting_findings(config)
    if set(_RUNS) <= set(valid):
        yield from unused_findings(config, draft, train=train, splits=splits, seeds=seeds)
        if train:
            yield from unused_in_training(config, draft)


def _decided_by_task(config: Config, draft: Draft) -> Iterator[Finding]:
    """Settings of the team that are given although each task of the environment determines the
    team."""
    name = config.environment.name
    if name not in ENVIRONMENTS or ENVIRONMENTS[name].team is None:
        return
    for setting in ("agents", "rounds", "edges", "density", "views", "vote"):
        if ("team", setting) in draft.places:
            problem = f"each task of '{name}' has its own agents, edges and rounds; leave it out"
            yield ("team", setting), problem


def _unfit_to_learn(section: ModelSection) -> Iterator[Finding]:
    """A mistake if the model to train does not run in this process."""
    try:
        kind = kind_of(section)
    except ConfigError:
        return  # an unknown model is found before
    if kind not in IN_PROCESS:
        problem = f"'{section.name}' cannot be trained; its weights must be in this process: "
        yield ("model", "name"), problem + "base, or the folder of a model"


def _choose_edges(draft: Draft) -> None:
    """Keep the edges of a team whose edges were named; by default they are redrawn.

    An explicit request to redraw or learn edges contradicts named edges, which would not be used.
    """
    team, learning = draft.values.get("team"), draft.values.get("train")
    if not isinstance(team, dict) or not isinstance(learning, dict):
        return
    named, how = team.get("edges", "random"), learning.get("edges")
    if named == "random" or how == "fixed":
        return
    if how is None:
        draft.put(("train", "edges"), "fixed", "[team] edges")
    elif how in ("redraw", "learned"):
        draft.found(
            ("team", "edges"),
            f"'{named}' would not be used, because the edges are "
            f"{'redrawn' if how == 'redraw' else 'learned'} ([train] edges = '{how}'); leave out "
            "one of the two, or keep these edges with --learn-edges fixed",
        )


def check_training_config(draft: Draft) -> Config:
    """Check the configuration of a training run, which has its own defaults for the team."""
    team = draft.values.get("team")
    alone = isinstance(team, dict) and team.get("agents") == 1
    for name, value in TRAINING_TEAM.items():
        if ("team", name) not in draft.places and not (alone and name == "rounds"):
            draft.put(("team", name), value, f"[team] {name}")
    learning, place = draft.values.setdefault("train", {}), draft.values.get("environment")
    _choose_edges(draft)
    if isinstance(learning, dict) and learning.get("edges") == "learned":
        # One graph cannot be compared with others.
        draft.values["train"] = {"graphs": _GRAPHS, **learning}
    name = place.get("name", Config().environment.name) if isinstance(place, dict) else ""
    spec = ENVIRONMENTS.get(str(name))
    if spec is not None and spec.trains_on is None:
        draft.found(("environment", "name"), f"'{spec.name}' has only tests to be evaluated on")
    elif isinstance(place, dict) and spec is not None and spec.trains_on:
        if place.get("split") not in (None, "", spec.trains_on):
            where = draft.places.get(("environment", "split"), "split")
            draft.mistakes.append(
                f"{where}: training uses only '{spec.trains_on}'; the other splits are for tests"
            )
        # Where named tasks determine the split, any of them may be trained on.
        if place.get("split") or not place.get("tasks") or spec.split_of is None:
            draft.put(("environment", "split"), spec.trains_on, "training")
    return check_config(draft, train=True)
