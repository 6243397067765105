"""The settings of an experiment: unions chosen by name, from a file and ``section.name=value``.

A setting that another environment, model or place has does not exist. All mistakes are reported at
once, each with its place, what was expected, and the nearest name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from pydantic import (
    BeforeValidator,
    Field,
    SerializeAsAny,
    ValidationError,
    WrapValidator,
    field_validator,
)

from swarm_ui.environments.benchmark import Benchmark, Count, Natural, Texts
from swarm_ui.environments.phone.benchmark import Phone
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.benchmarks import kind_of_environment
from swarm_ui.experiment.model_settings import Agent, Model, Section, wrong
from swarm_ui.optim.config import FinetuneConfig, TeamConfig
from swarm_ui.optim.stage1.corpus import CorpusConfig

Amount = Annotated[float, Field(ge=0.0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class Team(Section):
    """The agents, their edges, and the vote. ``None``: one agent, or in training the team of four
    in three rounds with a temperature of 0.8 and shuffled views."""

    agents: Annotated[int, Field(ge=1, le=64)] | None = None
    rounds: Annotated[int, Field(ge=1, le=16)] | None = None
    edges: str = "random"
    """``random``, ``none``, ``chain``, ``debate``, ``star``, ``tree``, ``agent_0>agent_1,...``, or
    the run or the file of learned edges."""
    density: Annotated[float, Field(ge=0.0, le=1.0)] = 0.5
    """Probability that two agents are joined at random."""
    views: Literal["same", "shuffle", "pane"] | None = None
    """What agents see: the same screen, its elements in different orders, or one app each."""
    vote: Literal["majority", "probability"] = "majority"
    temperature: Amount | None = None
    temperatures: tuple[Amount, ...] = ()
    """A temperature for each agent, instead of ``temperature``; empty: all agents have the same."""
    max_tokens: Count | None = None
    """Maximum number of tokens of a reply."""
    seed: Natural = 0
    """Of random edges."""

    def filled(self, *, learning: bool) -> FilledTeam:
        """The team that acts, or in training the one that learns."""
        agents = self.agents or (4 if learning else 1)
        warm = 0.8 if learning else None
        return FilledTeam(
            **{
                **self.model_dump(),
                "agents": agents,
                "rounds": self.rounds or (3 if learning and agents > 1 else 1),
                "views": self.views or ("shuffle" if learning else "same"),
                "temperature": warm if self.temperature is None else self.temperature,
            }
        )


class FilledTeam(Team):
    """A team whose size is known."""

    agents: int
    rounds: int
    views: Literal["same", "shuffle", "pane"]

    def filled(self, *, learning: bool) -> FilledTeam:
        return self


class Critic(Section):
    """Who assigns credit in training and judges single actions, and the teacher."""

    kind: str = ""
    """``scripted``, ``llm``, ``learned``, ``outcome``, a plug-in or ``module:name``; empty:
    scripted where the environment has one, else outcome."""
    teacher: Literal["scripted", "none"] = "none"
    """Who shows a right action where no agent proposed one."""
    trust: bool = False
    """Whether the critic is weighed against the outcome, with a learned weight."""
    model: Model | None = None
    """The model that ``llm`` asks; ``None``: the agents' own."""
    folder: str = ""
    """The folder or name of a learned critic."""


class Local(Section):
    """Episodes are played in this process."""

    name: Literal["local"] = "local"
    concurrency: Count = 8
    """Concurrent episodes of an evaluation."""


class Ray(Section):
    """Episodes are played in the workers of a Ray cluster."""

    name: Literal["ray"] = "ray"
    address: str = ""
    """``HOST:PORT`` of a running cluster; empty: ``RAY_ADDRESS``, or else a local one."""
    workers: Count | None = None
    """Maximum number of workers; ``None``: as many as the cluster has room for."""
    episodes: Count = 1
    """Number of concurrent episodes of a worker."""
    cpus: Amount = 1.0
    gpus: Amount = 0.0
    resources: dict[str, Amount] | None = None
    """Custom resources of a worker; ``None``: those that the environment needs."""
    model_actor: bool | None = None
    """Whether one actor holds the model for all workers, or each loads its own. ``None``: it does,
    but for an embedded agent."""
    gpus_per_model: Amount = 0.0
    """Share of a GPU for the actor that holds the model."""

    @field_validator("address")
    @classmethod
    def _no_client(cls, address: str) -> str:
        if address.startswith("//"):
            raise ValueError(f"'ray:{address}' is an address of the Ray Client: expected HOST:6379 "
                             "in a command on a node of the cluster")  # fmt: skip
        return address


def with_place(values: object) -> Any:
    """A place by its name alone: ``local``, ``ray`` or ``ray:HOST:PORT``."""
    if isinstance(values, Mapping):
        return {"name": "local", **values}
    if not isinstance(values, str):
        return values
    name, colon, address = values.partition(":")
    return {"name": name, **({"address": address} if colon else {})}


Place = Annotated[Annotated[Local | Ray, Field(discriminator="name")], BeforeValidator(with_place)]


class Evaluation(Section):
    """Which episodes an evaluation plays, and when it says something."""

    split: tuple[str, ...] = ()
    """The splits; empty: the first of the environment."""
    seed: tuple[Natural, ...] = (0,)
    """Each chooses its own episodes; equal settings give equal episodes."""
    episodes: Natural = 0
    """Number of episodes; 0: 20, or one for each named task."""
    fail_under: Share | None = None
    """The command fails if a smaller share is solved; ``None``: 1 for a single episode, else 0."""
    max_masked: Share = 0.2
    """Nothing is concluded if faults ended a larger share of the episodes."""

    @field_validator("split", "seed", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        return [value] if isinstance(value, str | int) else value

    @field_validator("split", "seed")
    @classmethod
    def _once(cls, values: tuple[object, ...]) -> tuple[object, ...]:
        twice = [value for value in values if values.count(value) > 1]
        if twice:
            raise ValueError(f"{twice[0]} is given twice, but its episodes count once")
        return values


class RunSettings(Section):
    """What a run writes besides its results."""

    log: Texts = ()
    """Loggers: ``tensorboard``, ``wandb``, ``mlflow``, a plug-in, or ``module:factory``."""
    report: bool = True
    """Write ``report.html``."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Train(TeamConfig):
    """Settings of :class:`~swarm_ui.optim.config.TeamConfig`, and a loss of one's own."""

    loss: str = ""
    """A plug-in, or ``module:name`` of a function of (model, batch); empty: that of
    ``update.method``."""


def _environment(values: object) -> object:
    if isinstance(values, str):
        values = {"name": values}
    if isinstance(values, Mapping):
        name = values.get("name", "phone")
        if not isinstance(name, str):
            raise wrong("name", f"expected a text, got {name!r}", name)
        return kind_of_environment(name).model_validate(values)
    return values


def _checked_train(value: Any, handler: Any) -> Any:
    try:
        return handler(value)
    except ConfigError as error:  # of the class itself
        raise ValueError(str(error)) from error


def _struct_of(kind: type[msgspec.Struct]) -> Any:
    """Checks settings of a record of another package, which stay a plain section."""

    def check(values: Mapping[str, Any]) -> Mapping[str, Any]:
        foreign = [name for name in values if name not in kind.__struct_fields__]
        if foreign:
            raise ValidationError.from_exception_data("", [
                {"type": "extra_forbidden", "loc": (name,), "input": ""} for name in foreign
            ])  # fmt: skip
        try:
            msgspec.convert(dict(values), kind)
        except (msgspec.ValidationError, ConfigError) as error:
            raise ValueError(str(error).replace("`", "'")) from error
        return values

    return check


Environment = Annotated[SerializeAsAny[Benchmark], BeforeValidator(_environment)]


class Config(Section):
    """All settings of an experiment."""

    env: Environment = Phone()
    model: Model = Agent()
    team: Team = Team()
    eval: Evaluation = Evaluation()
    train: Annotated[Train, WrapValidator(_checked_train)] = Train()
    critic: Critic = Critic()
    place: Place = Local()
    run: RunSettings = RunSettings()
    synthesize: dict[str, Any] = Field(default_factory=dict)
    """Settings of :class:`swarm_ui.optim.stage1.CorpusConfig`."""
    finetune: dict[str, Any] = Field(default_factory=dict)
    """Settings of :class:`swarm_ui.optim.stage1.FinetuneConfig`."""

    _corpus = field_validator("synthesize")(_struct_of(CorpusConfig))
    _tuning = field_validator("finetune")(_struct_of(FinetuneConfig))

    def plain(self) -> dict[str, Any]:
        """The settings as JSON-compatible objects."""
        return self.model_dump(mode="json")
