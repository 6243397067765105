"""Settings that would have no effect in a run: each is a mistake, which names the reason.

A value that is the default is never one, because a configuration file may list all defaults. A file
may also serve several commands, so what only another command or place uses is a mistake only on the
command line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import (
    Config,
    Draft,
    EnvironmentSection,
    Finding,
    ModelSection,
    Name,
    TeamSection,
)
from swarm_ui.experiment.environments import ENVIRONMENTS, spec_of
from swarm_ui.experiment.environments.spec import EnvironmentSpec
from swarm_ui.experiment.models import kind_of
from swarm_ui.experiment.placement.place import on_ray
from swarm_ui.experiment.placement.shared_model import model_actors
from swarm_ui.experiment.training.roles import critic_kind

OVER_NETWORK = ("key_env", "max_calls", "max_tokens_total", "rate_limit", "concurrency", "timeout",
                "token_field", "send_seed")  # fmt: skip
"""Settings of ``[model]`` for a client of an endpoint or of a server that acts."""
_NOT_IN_TRAINING: dict[Name, str] = {
    ("environment", "episodes"): "give the number of rollouts with --rollouts",
    ("environment", "seed"): "the seed of training is --seed",
    ("environment", "suite_seed"): "its suite is for tests; leave it out",
    ("environment", "combinations"): "its suite is for tests; leave it out",
    ("run", "concurrency"): "episodes at once are train.concurrency",
    ("run", "fail_under"): "it is for eval; leave it out",
    ("run", "max_masked"): "it is for eval; leave it out",
}
_RAY = ("workers", "episodes", "cpus", "gpus", "resources", "model_actors", "gpus_per_model",
        "shared_folder")  # fmt: skip


def unused_environment_settings(
    section: EnvironmentSection, specs: Sequence[EnvironmentSpec]
) -> Iterator[Finding]:
    """Settings that none of the environments in ``specs``, which are played, reads."""
    readers: dict[str, list[str]] = {}
    for spec in ENVIRONMENTS.values():
        for name in spec.reads:
            readers.setdefault(name, []).append(spec.name)
    for name, environments in readers.items():
        if changed(section, name) and not any(name in spec.reads for spec in specs):
            played = " and ".join(f"'{spec.name}'" for spec in specs)
            because = f"in {played}, only in {', '.join(environments)}"
            yield unused(("environment", name), getattr(section, name), because)


def unused_findings(
    config: Config, draft: Draft, *, train: bool, splits: Sequence[str], seeds: Sequence[int]
) -> Iterator[Finding]:
    """Settings of a run that have no effect.

    Args:
        config: the settings.
        draft: where they were given.
        train: the run is a training.
        splits, seeds: used instead of those of the configuration.
    """
    section = config.environment
    yield from unused_environment_settings(section, [spec_of(section.name)])
    yield from _same_episodes(section, () if train else splits, () if train else seeds, train=train)
    try:
        kind = kind_of(config.model)
    except ConfigError:
        return  # an unknown model is found before
    yield from _unused_by_model(config, kind, train=train)
    if spec_of(section.name).team is None:
        yield from _unused_by_team(config.team, draft)
    if not train and section.held_out:
        yield unused(("environment", "held_out"), section.held_out, "except in training")
    if train:
        for name, instead in _NOT_IN_TRAINING.items():
            if typed(draft, name):
                value = getattr(getattr(config, name[0]), name[1])
                yield unused(name, value, "in training", instead)
    yield from unused_by_place(config, draft, train=train)


def unused_by_place(config: Config, draft: Draft, *, train: bool) -> Iterator[Finding]:
    """Settings on the command line that are for another place than the run's."""
    ray = config.ray
    chosen = [name for name in _RAY if typed(draft, ("ray", name))]
    if not on_ray(config):
        for name in chosen:
            because = "without workers of a Ray cluster"
            yield unused(("ray", name), getattr(ray, name), because, "add --on ray")
        return
    for section, given in (("run", not train), ("train", train)):
        if given and typed(draft, (section, "concurrency")):
            value = config.train["concurrency"] if train else config.run.concurrency
            because = "in workers of a Ray cluster"
            yield unused((section, "concurrency"), value, because, "set ray.episodes for each")
    if "shared_folder" in chosen and not train:
        yield unused(("ray", "shared_folder"), ray.shared_folder, "except in training")
    held = 0 if train and config.model.actor else model_actors(config)
    if "model_actors" in chosen and ray.model_actors and not held and not config.model.actor:
        yield unused(("ray", "model_actors"), ray.model_actors, "with an endpoint")
    if "gpus_per_model" in chosen and not held:
        because = "where no process holds the model for the workers"
        yield unused(("ray", "gpus_per_model"), ray.gpus_per_model, because, "give --model-actors")


def changed(section: msgspec.Struct, name: str) -> bool:
    """Whether a setting differs from its default."""
    return bool(getattr(section, name) != getattr(type(section)(), name))


def typed(draft: Draft, name: Name) -> bool:
    """Whether a setting is from the command line, and not from a file."""
    return draft.places.get(name, "").startswith("--")


def unused(name: Name, value: object, because: str, instead: str = "leave it out") -> Finding:
    """Describe the mistake of giving a setting that has no effect."""
    setting = f"[{'.'.join(name[:-1])}] {name[-1]} = {value!r}"
    return name, f"{setting} has no effect {because}; {instead}"


def _same_episodes(
    section: EnvironmentSection, splits: Sequence[str], seeds: Sequence[int], *, train: bool
) -> Iterator[Finding]:
    """Splits or seeds that choose the same episodes again."""
    for name, given in (("split", splits), ("seed", seeds)):
        twice = [value for value in dict.fromkeys(given) if list(given).count(value) > 1]
        if twice:
            problem = (
                f"--{name} {twice[0]} is given twice, but its episodes count once; leave one out"
            )
            yield ("environment", name), problem
    seeds = seeds or (section.seed,)
    if not train and spec_of(section.name).fixed_episodes(section) and any(seeds):
        because = f"on the episodes of '{section.name}', which are given"
        if section.suite_seed is not None:
            because = "on the episodes of a suite, which --suite-seed chooses"
        yield unused(("environment", "seed"), max(seeds), because)


def _unused_by_model(config: Config, kind: str, *, train: bool) -> Iterator[Finding]:
    section = config.model
    where = f"on '{section.name}', which is not behind an endpoint"
    for name in OVER_NETWORK:
        if changed(section, name) and kind != "endpoint" and not section.actor:
            yield unused(("model", name), getattr(section, name), where)
    if section.actor_name and not section.actor:
        instead = "name the server with --actor" if train else "leave it out"
        yield unused(("model", "actor_name"), section.actor_name, "without a server", instead)
    judged = train and "learned" in (critic_kind(config), config.critic.judge)
    if changed(section, "device") and kind != "local" and not judged:
        because = f"on '{section.name}', only on a language model in this process"
        yield unused(("model", "device"), section.device, because)
    if section.vision:
        yield from _unseen(config.environment, section, kind)


def _unseen(place: EnvironmentSection, section: ModelSection, kind: str) -> Iterator[Finding]:
    if kind not in ("endpoint", "local"):
        yield unused(("model", "vision"), True, f"on '{section.name}', which reads no pictures")
    elif not (place.screenshots or spec_of(place.name).by_user):
        instead = "add --set environment.screenshots=true"
        yield unused(("model", "vision"), True, "without screenshots", instead)


def _unused_by_team(team: TeamSection, draft: Draft) -> Iterator[Finding]:
    if team.agents == 1:
        team_only = {
            "rounds": team.rounds > 1,
            "views": team.views in ("window", "pane"),
            "vote": team.vote != "majority",
        }
        for name in (name for name, given in team_only.items() if given):
            value = getattr(team, name)
            yield unused(("team", name), value, "on one agent", "give more with --agents N")
    if team.edges != "random":
        for name in ("density", "seed"):
            if changed(team, name):
                because = f"on edges that are not random, but '{team.edges}'"
                yield unused(("team", name), getattr(team, name), because)
    if typed(draft, ("team", "temperature")) and typed(draft, ("team", "temperatures")):
        because = "where each agent has its own of --temperatures"
        yield unused(("team", "temperature"), team.temperature, because)
