"""Settings of a training that would have no effect with its other settings: each is a mistake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import Config, Draft, Finding, Name
from swarm_ui.experiment.models import starts_apart
from swarm_ui.experiment.runs.unused_settings import changed, typed, unused
from swarm_ui.experiment.training.roles import asks_model, critic_kind

if TYPE_CHECKING:
    from swarm_ui.optim.config import TeamConfig

_Rule = tuple[str, bool, str]
"""A setting of ``[train]``, whether it is used, and why not."""


def unused_in_training(config: Config, draft: Draft) -> Iterator[Finding]:
    """Settings of ``[train]``, ``[critic]`` and ``[team]`` that have no effect."""
    from swarm_ui.optim.config import TeamConfig

    given = config.train
    try:
        settings = msgspec.convert(given, TeamConfig)
    except (msgspec.ValidationError, ConfigError):
        return  # its mistakes are found elsewhere
    apart = starts_apart(config)
    rules = (*_of_method(settings), *_of_iterations(settings, given, apart),
             *_of_edges(settings, config))  # fmt: skip
    for name, used, because in rules:
        path = tuple(name.split("."))
        if not used and _given(given, path):
            value, default = (_value(each, path) for each in (settings, TeamConfig()))
            if value != default:
                yield unused(("train", *path), value, because)
    if config.model.adapters and given.get("rank") is not None:
        because = f"on the adapters in '{config.model.adapters}', which keep theirs"
        yield unused(("train", "rank"), given["rank"], because)
    if config.critic.adversary == "llm" and settings.update.method in ("rft", "grpo", "gspo"):
        instead = "use --method dpo or ipo, or leave the adversary out"
        because = f"with method '{settings.update.method}', which learns from no wrong replies"
        yield unused(("critic", "adversary"), "llm", because, instead)
    if config.critic.teacher != "none" and settings.update.method in ("grpo", "gspo"):
        because = "with a policy gradient, which learns from the agents' own replies"
        instead = "use --method rft, dpo or ipo, or leave the teacher out"
        yield unused(("critic", "teacher"), config.critic.teacher, because, instead)
    if settings.edges != "fixed" and typed(draft, ("team", "seed")):
        because = f"where edges are {settings.edges}; the seed of training is --seed"
        yield unused(("team", "seed"), config.team.seed, because)
    if config.critic.trust and critic_kind(config) == "outcome":
        yield unused(("critic", "trust"), True, "without a critic")
    for name in ("key_env", "max_calls", "max_tokens_total"):
        if changed(config.critic, name) and not asks_model(config):
            yield unused(("critic", name), getattr(config.critic, name), "without --critic llm")


def _of_method(settings: TeamConfig) -> Iterator[_Rule]:
    method = settings.update.method
    gradient = method in ("grpo", "gspo")
    because = f"with method '{method}', only with "
    yield "update.clip", gradient, because + "grpo and gspo"
    yield "update.beta", method != "rft", because + "dpo, ipo, grpo and gspo"
    yield "update.nll_weight", method in ("dpo", "ipo"), because + "dpo and ipo"
    yield "pairs.easy_share", not gradient, because + "dpo, ipo and rft"


def _of_iterations(
    settings: TeamConfig, given: Mapping[str, object], apart: bool
) -> Iterator[_Rule]:
    """``apart``: the training starts from adapters that differ, and are never trained as one."""
    shared, every = 0 if apart else settings.shared_iterations, settings.iterations
    yield "shared_iterations", not apart, "on loaded adapters that differ"
    yield "shared_steps", shared > 0 and every > 0, "without shared iterations"


def _of_edges(settings: TeamConfig, config: Config) -> Iterator[_Rule]:
    learned, credit = settings.edges == "learned", critic_kind(config) != "outcome"
    because = f"on edges that are not learned ([train] edges = '{settings.edges}')"
    yield "edge_credit", learned, because
    yield "edge_credit", credit, "without a critic"
    yield "graphs", settings.edges != "fixed", "on fixed edges"


def _given(values: Mapping[str, Any], path: Name) -> bool:
    inner = values.get(path[0])
    return path[0] in values and (len(path) == 1 or path[1] in (inner or {}))


def _value(settings: object, path: Name) -> object:
    return reduce(getattr, path, settings)
