"""Mistakes that the type of one setting does not show. Nothing is opened or written."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from swarm_ui.adapter_metadata import CRITIC_FILE
from swarm_ui.environments.benchmark import Benchmark
from swarm_ui.errors import ConfigError, SwarmError
from swarm_ui.experiment.benchmarks import wrapper_mistake
from swarm_ui.experiment.config import Config, Ray
from swarm_ui.experiment.loggers import LOGGERS
from swarm_ui.experiment.model_settings import IN_PROCESS, Agent, AnyModel, Code, Endpoint, Language
from swarm_ui.experiment.models import check_adapters, scripted
from swarm_ui.experiment.plugins import unknown
from swarm_ui.experiment.teams import agent_names, configured_edges
from swarm_ui.nodes.models.pretrained.catalogue import CRITIC_ADAPTERS, adapter_folder

Finding = tuple[str, str]
"""A setting, such as ``"team.agents"``, and what is wrong with it."""
CRITICS = ("scripted", "llm", "learned", "outcome")


def mistakes(config: Config, *, learning: bool, bad: Collection[str] = ()) -> Iterator[Finding]:
    """Mistakes in settings whose types are right.

    ``learning``: they are those of a training. ``bad``: sections whose types are wrong; they have
    defaults here."""
    env, team, found = config.env, config.team.filled(learning=learning), config.eval
    for name, problem in env.mistakes(() if learning else found.split):
        yield ("eval.split" if name == "split" else f"env.{name}"), problem
    for problem in filter(None, map(wrapper_mistake, env.wrap)):
        yield "env.wrap", problem
    if not learning and env.fixed_episodes and any(found.seed):
        yield "eval.seed", f"the episodes of '{env.name}' are given, and no seed chooses them"
    for logger in config.run.log:
        if problem := unknown("loggers", logger, LOGGERS):
            yield "run.log", problem
    try:
        configured_edges(team)
    except ConfigError as error:
        yield "team.edges", str(error)
    if team.temperatures and len(team.temperatures) != team.agents:
        expected = f"expected one temperature for each of {team.agents} agents"
        yield "team.temperatures", f"{expected}, got {len(team.temperatures)}"
    if type(env).team is not Benchmark.team:
        for name in ("agents", "rounds", "edges", "density", "views", "vote"):
            if name in config.team.model_fields_set and getattr(config.team, name) is not None:
                problem = f"each task of '{env.name}' has its own agents, edges and rounds"
                yield f"team.{name}", problem
    yield from _of_model(config.model, env, 0 if "team" in bad else team.agents, learning=learning)
    if learning and not bad:
        yield from _of_training(config)


def _of_model(model: AnyModel, env: Benchmark, agents: int, *, learning: bool) -> Iterator[Finding]:
    if isinstance(model, Code) and model.script is not None:
        try:
            scripted(model.script)
        except SwarmError as error:
            yield "model.name", str(error)
    if isinstance(model, Language) and model.actor and model.vision:
        yield "model.actor", "a server cannot act for a vision-language model; leave it out"
    if isinstance(model, Language | Endpoint) and model.vision and not env.screenshots_given:
        yield "model.vision", "there are no screenshots; add env.screenshots=true"
    if isinstance(model, Agent | Language) and model.adapters:
        try:
            check_adapters(model, agents, agent_names(agents) if learning else ())
        except ConfigError as error:
            yield "model.adapters", str(error)


def _of_training(config: Config) -> Iterator[Finding]:
    env, model, team = config.env, config.model, config.team.filled(learning=True)
    if env.trains_on is None:
        yield "env.name", f"'{env.name}' has only tests to be evaluated on"
    if not isinstance(model, IN_PROCESS):
        yield "model.name", (f"'{model.name}' cannot be trained; its weights must be in this "
                             "process: base, or the folder of a model")  # fmt: skip
    if team.edges != "random" and config.train.edges != "fixed":
        yield "team.edges", (f"'{team.edges}' would not be used, because train.edges is "
                             f"{config.train.edges}; leave one of the two out")  # fmt: skip
    if isinstance(model, Language) and model.actor and isinstance(config.place, Ray):
        if config.place.model_actor:
            yield "place.model_actor", ("a server acts (model.actor), and no other process holds "
                                       "the model; leave it out")  # fmt: skip
        if team.vote == "probability":
            yield "team.vote", ("while a server acts, workers of a cluster have no weights to "
                                "compute probabilities; expected majority")  # fmt: skip
    yield from critic_mistakes(config)


def critic_mistakes(config: Config) -> Iterator[Finding]:
    """Mistakes in the choice of critic and teacher."""
    section, kind = config.critic, critic_kind(config)
    if kind not in CRITICS and (problem := unknown("critics", kind, CRITICS)):
        yield "critic.kind", problem
    for name, expected in (("kind", "llm, learned or outcome"), ("teacher", "none")):
        if getattr(section, name) == "scripted" and config.env.solver() is None:
            lacks = f"'{config.env.name}' has no solver for it; expected {expected}"
            yield f"critic.{name}", lacks
    if section.teacher != "none" and kind not in ("scripted", "llm", "learned"):
        yield "critic.teacher", ("what a teacher shows needs a critic that judges it: scripted, "
                                 "llm or learned; or leave the teacher out")  # fmt: skip
    if kind == "learned" and not (adapter_folder(section.folder) / CRITIC_FILE).is_file():
        yield "critic.folder", (f"no learned critic in '{section.folder}': expected the folder "
                                "OUT/final of swarm-ui critic, or "
                                f"{' or '.join(CRITIC_ADAPTERS)}")  # fmt: skip
    if kind == "learned" and isinstance(config.place, Ray):
        yield "critic.kind", ("a learned critic judges in the process of the command, and workers "
                              "have none; expected another one, or --on local")  # fmt: skip
    if asks_model(config):
        if section.model is None and isinstance(config.model, Agent):
            yield "critic.model", ("embedded agents answer decisions, not questions; name a "
                                   "language model with critic.model=NAME")  # fmt: skip
    elif section.model is not None:
        yield "critic.model", "nobody asks this model: give critic.kind=llm as well"


def critic_kind(config: Config) -> str:
    """Who assigns credit, after the default is filled in."""
    default = "outcome" if config.env.solver() is None else "scripted"
    return config.critic.kind or default


def asks_model(config: Config) -> bool:
    """Whether the critic asks a language model questions."""
    return critic_kind(config) == "llm"
