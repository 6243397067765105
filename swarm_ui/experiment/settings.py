"""The settings of a demo run, stored in ``config.json``."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import msgspec

from swarm_ui.errors import ConfigError

EnvironmentName = Literal["phone", "miniwob", "androidworld"]
Method = Literal["rft", "dpo"]
DEFAULT_METHOD: Method = "rft"
"""That of :class:`~swarm_ui.optim.config.UpdateConfig`, which needs torch."""
Edges = Literal["redraw", "fixed", "learned"]
PromptFormatName = Literal["", "json", "compact"]

_RANGES: dict[str, tuple[float, float]] = {
    "agents": (1, 12),
    "rounds": (1, 8),
    "iterations": (0, 1000),
    "episodes": (4, 100_000),
    "episodes_test": (1, 100_000),
    "critic_noise": (0.0, 0.5),
    "devices": (0, 10_000),
    "rank": (1, 512),
    "rehearsal": (0.0, 0.9),
    "seed": (0, 2**31),
    "processes": (1, 64),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one run. With the defaults, a team trains on the embedded phone alone and
    without a teacher, as in the studies; :func:`defaults` has the defaults of the demo."""

    env: EnvironmentName = "phone"
    quick: bool = False
    seed: int = 0
    agent: str | None = None
    """``base``, ``general``, or the folder of an agent; ``None``: ``base``."""
    agents: int = 4
    rounds: int = 3
    density: float = 0.5
    temperature: float = 0.8
    """Temperature of the agents in rollouts, and in the vote of clones."""
    method: Method = DEFAULT_METHOD
    edges: Edges = "redraw"
    iterations: int = 4
    shared_iterations: int = 3
    episodes: int = 112
    """Rollouts in each iteration."""
    shared_steps: int | None = None
    steps: int | None = None
    lr: float | None = None
    """Peak learning rate of the adapters. ``None``, as for the steps: by the size of the model
    (:meth:`~swarm_ui.optim.config.TeamConfig.filled`)."""
    rank: int = 16
    """Rank of the adapters that training adds."""
    devices: int = 0
    """Invented devices, on which half of the training episodes are played; 0: all are on the phone.
    """
    teacher: bool = False
    """Whether the solver of the simulated phone shows a right action where no agent proposed one.
    """
    rehearsal: float = 0.4
    """Share of each update that consists of stage-1 samples on invented screens."""
    critic_noise: float = 0.03
    """Share of the scripted critic's verdicts that are inverted."""
    tasks: tuple[str, ...] = ()
    """Use only these tasks; empty: all."""
    episodes_test: int = 384
    """Test episodes of each arm on known templates."""
    episodes_other: int = 128
    """Test episodes of each arm on new templates, and on new apps; 0: not measured."""
    episodes_validation: int = 64
    """Episodes of the learning curve after each iteration; 0: none."""
    web_episodes: int = 3
    """Episodes of each arm on each web task; 0: not measured."""
    processes: int = dataclasses.field(default_factory=lambda: min(2, os.cpu_count() or 1))
    """Number of evaluation processes in addition to the main process."""
    base_url: str | None = None
    model: str | None = None
    prompt_format: PromptFormatName = ""
    """Format of prompts and replies of ``model``; empty: its own."""
    adapters: str = ""
    """Folder of one adapter for all agents, or ``RUN/adapters``, with which ``model`` starts."""
    critic_model: str | None = None
    max_calls: int | None = None

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise ConfigError(
                    f"--{name.replace('_', '-')} must be from {low} to {high}, got {value}"
                )
        if not 0.0 < self.density < 1.0:
            raise ConfigError(f"--density must be above 0 and below 1, got {self.density}")
        if self.env != "phone" and (self.devices or self.teacher):
            raise ConfigError("--devices and --teacher are for --env phone")
        if self.base_url is not None and self.model is None:
            raise ConfigError("--base-url needs --model NAME, the model the endpoint serves")
        if self.base_url is None and (self.critic_model or self.max_calls):
            raise ConfigError(
                "--critic-model and --max-calls are for an endpoint: add --base-url URL"
            )
        if self.prompt_format and not self.given_model:
            raise ConfigError(
                "--prompt-format is for a language model: add --model NAME, or leave it out"
            )
        if self.adapters and (self.over_endpoint or not self.given_model):
            raise ConfigError(
                "--adapters is for a language model in this process: add --model NAME, and leave "
                "--base-url out"
            )
        if self.given_model and self.agent:
            raise ConfigError("--agent is for the base agent, not for --model or --base-url")

    @property
    def over_endpoint(self) -> bool:
        """Whether the agents ask a model at an endpoint."""
        return self.base_url is not None

    @property
    def given_model(self) -> bool:
        """Whether the agents ask a language model instead of the base agent."""
        return self.model is not None

    @property
    def trains_model(self) -> bool:
        """Whether the given language model is trained. It must run in this process, the environment
        must be one for training, and there must be at least one iteration."""
        here = self.given_model and not self.over_endpoint and self.env != "androidworld"
        return here and self.iterations > 0

    @property
    def name(self) -> str:
        """The name of the run directory."""
        if self.over_endpoint:
            return f"{self.env}-endpoint"
        return f"{self.env}-model" if self.given_model else self.env


def plain(settings: Settings) -> dict[str, Any]:
    """The settings as JSON-compatible objects."""
    return msgspec.json.decode(msgspec.json.encode(settings), type=dict[str, Any])


def defaults(*, quick: bool, env: EnvironmentName, endpoint: bool) -> Settings:
    """The default settings of the demo for an environment and a kind of model."""
    given: dict[str, Any] = {}
    if quick:
        given |= {
            "iterations": 2, "shared_iterations": 1, "episodes": 24, "shared_steps": 24,
            "steps": 10, "episodes_test": 48, "episodes_other": 0, "episodes_validation": 0,
            "web_episodes": 1,
        }  # fmt: skip
    if env == "miniwob":
        # Credit by outcome alone needs more episodes; a page is slower than the phone.
        given |= {"shared_iterations": 2 if quick else 4, "episodes_test": 1 if quick else 4}
    if env == "phone" and not endpoint:
        # What gains most on new apps; see docs/results.md.
        given |= {"devices": 256, "teacher": True, "rank": 64}
    if endpoint or env == "androidworld":
        given["episodes_test"] = 4 if quick else 12
    if endpoint:  # on a CPU, one iteration of a language model may take an hour
        given |= {"iterations": 0, "shared_iterations": 0}
    return Settings(env=env, quick=quick, **given)


def restored(config: Mapping[str, object], where: str) -> Settings:
    """The settings of an existing run. Raises ``ConfigError`` if another program wrote them."""
    values = dict(config)
    if values.get("model") and "adapters" not in values:  # by a version that trained no such model
        values["iterations"] = 0
    try:
        return msgspec.convert(values, Settings)
    except (msgspec.ValidationError, TypeError) as error:
        raise ConfigError(f"'{where}' is not a run of this script: {error}") from error


ENVIRONMENTS: tuple[str, ...] = get_args(EnvironmentName)
METHODS: tuple[Method, ...] = get_args(Method)
EDGES: tuple[str, ...] = get_args(Edges)
