"""Mistakes that the type of one setting does not show. Nothing is opened or written."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from swarm_ui.adapter_metadata import CRITIC_FILE
from swarm_ui.environments.benchmark import Benchmark
from swarm_ui.errors import ConfigError, SwarmError
from swarm_ui.experiment.config import Config, Ray
from swarm_ui.experiment.loggers import logger_mistakes
from swarm_ui.experiment.model_settings import (
    IN_PROCESS,
    Agent,
    AnyModel,
    Endpoint,
    Language,
    Script,
)
from swarm_ui.experiment.models import check_adapters, scripted
from swarm_ui.experiment.plugins import named_by_user, unknown_name
from swarm_ui.experiment.teams import agent_names, configured_edges
from swarm_ui.experiment.wrapping import wrapper_mistakes
from swarm_ui.nodes.models.pretrained.catalogue import CRITIC_ADAPTERS, adapter_folder

Finding = tuple[tuple[str, ...], str]
"""A setting and what is wrong with it."""
CRITICS = ("scripted", "llm", "learned", "outcome")


def mistakes(config: Config, *, learning: bool, bad: Collection[str] = ()) -> Iterator[Finding]:
    """Mistakes in settings whose types are right.

    Args:
        learning: they are those of a training.
        bad: sections whose types are wrong; they have defaults here.
    """
    env, team, found = config.env, config.team, config.eval
    for name, problem in env.mistakes(() if learning else found.split):
        section = "eval" if name == "split" else "env"
        yield (section, name), problem
    for problem in wrapper_mistakes(env.wrap):
        yield ("env", "wrap"), problem
    if not learning and env.fixed_episodes and any(found.seed):
        yield ("eval", "seed"), f"the episodes of '{env.name}' are given, and no seed chooses them"
    for problem in logger_mistakes(config.run.log):
        yield ("run", "log"), problem
    yield from _of_team(config, learning=learning)
    agents = 0 if "team" in bad else team.filled(learning=learning).agents
    yield from _of_model(config.model, env, agents, learning=learning)
    if learning and not bad:
        yield from _of_training(config)


def _of_team(config: Config, *, learning: bool) -> Iterator[Finding]:
    team = config.team.filled(learning=learning)
    try:
        configured_edges(team)
    except ConfigError as error:
        yield ("team", "edges"), str(error)
    if team.temperatures and len(team.temperatures) != team.agents:
        expected = f"expected one temperature for each of {team.agents} agents"
        yield ("team", "temperatures"), f"{expected}, got {len(team.temperatures)}"
    if type(config.env).team is not Benchmark.team:
        for name in ("agents", "rounds", "edges", "density", "views", "vote"):
            if name in config.team.model_fields_set and getattr(config.team, name) is not None:
                problem = f"each task of '{config.env.name}' has its own agents, edges and rounds"
                yield ("team", name), problem


def _of_model(model: AnyModel, env: Benchmark, agents: int, *, learning: bool) -> Iterator[Finding]:
    if isinstance(model, Script):
        try:
            scripted(Path(model.name.partition(":")[2]))
        except SwarmError as error:
            yield ("model", "name"), str(error)
    if isinstance(model, Language) and model.actor and model.vision:
        yield ("model", "actor"), "a server cannot act for a vision-language model; leave it out"
    if isinstance(model, Language | Endpoint) and model.vision and not env.screenshots_given:
        yield ("model", "vision"), "there are no screenshots; add env.screenshots=true"
    if isinstance(model, Agent | Language) and model.adapters:
        try:
            check_adapters(model, agents, agent_names(agents) if learning else ())
        except ConfigError as error:
            yield ("model", "adapters"), str(error)


def _of_training(config: Config) -> Iterator[Finding]:
    env, model, team = config.env, config.model, config.team.filled(learning=True)
    if env.trains_on is None:
        yield ("env", "name"), f"'{env.name}' has only tests to be evaluated on"
    if not isinstance(model, IN_PROCESS):
        yield ("model", "name"), (f"'{model.name}' cannot be trained; its weights must be in this "
                                  "process: base, or the folder of a model")  # fmt: skip
    if team.edges != "random" and config.train.edges != "fixed":
        yield ("team", "edges"), (f"'{team.edges}' would not be used, because train.edges is "
                                  f"{config.train.edges}; leave one of the two out")  # fmt: skip
    if isinstance(model, Language) and model.actor and isinstance(config.place, Ray):
        if config.place.model_actor:
            yield ("place", "model_actor"), ("a server acts (model.actor), and no other process "
                                              "holds the model; leave it out")  # fmt: skip
        if team.vote == "probability":
            yield ("team", "vote"), ("while a server acts, workers of a cluster have no weights to "
                                     "compute probabilities; expected majority")  # fmt: skip
    yield from critic_mistakes(config)


def critic_mistakes(config: Config) -> Iterator[Finding]:
    """Mistakes in the choice of critic, judge, adversary and teacher."""
    section, solver = config.critic, config.env.solver()
    kind = critic_kind(config)
    if kind not in CRITICS and not named_by_user("critics", kind):
        yield ("critic", "kind"), unknown_name("critics", kind, CRITICS)
    for name in ("kind", "judge", "teacher"):
        if getattr(section, name) == "scripted" and solver is None:
            expected = "llm, learned or outcome" if name == "kind" else "another one"
            yield ("critic", name), (f"'{config.env.name}' has no solver for it; expected "
                                     f"{expected}")  # fmt: skip
    judged = section.judge or kind in ("scripted", "llm", "learned")
    if section.teacher != "none" and not judged:
        yield ("critic", "teacher"), ("what a teacher shows needs a judge; give critic.judge, "
                                      "or leave the teacher out")  # fmt: skip
    if "learned" in (kind, section.judge):
        known = " or ".join(CRITIC_ADAPTERS)
        if not (adapter_folder(section.folder) / CRITIC_FILE).is_file():
            yield (
                ("critic", "folder"),
                (
                    f"no learned critic in '{section.folder}': expected the "
                    f"folder OUT/final of swarm-ui critic, or {known}"
                ),
            )
    if asks_model(config):
        if section.model is None and isinstance(config.model, Agent):
            yield ("critic", "model"), ("embedded agents answer decisions, not questions; name a "
                                        "language model with critic.model=NAME")  # fmt: skip
    elif section.model is not None:
        yield ("critic", "model"), "nobody asks this model: give critic.kind=llm as well"


def critic_kind(config: Config) -> str:
    """Who assigns credit, after the default is filled in."""
    if config.critic.kind:
        return config.critic.kind
    return "scripted" if config.env.solver() is not None else "outcome"


def asks_model(config: Config) -> bool:
    """Whether a role asks a language model questions."""
    section = config.critic
    return "llm" in (critic_kind(config), section.judge, section.adversary, section.teacher)
