"""A run: a folder with its settings, which an evaluation or a training fills and continues."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from swarm_ui.addresses import without_credentials
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.benchmarks import UserBenchmark, is_users, note_on
from swarm_ui.experiment.config import Config, FilledTeam, Ray
from swarm_ui.experiment.loading import load
from swarm_ui.experiment.loggers import LOGGERS
from swarm_ui.experiment.mistakes import CRITICS
from swarm_ui.experiment.model_settings import AnyModel, Client, Code, Endpoint, Language
from swarm_ui.nodes.models.pretrained.catalogue import is_hub_name
from swarm_ui.storage.run_directory import RunDirectory

T = TypeVar("T")
_FREE = {"place", "run", "eval.fail_under", "eval.max_masked"}
_FREE |= {f"{at}.{name}" for at in ("model", "critic.model")
          for name in ("url", "device", "actor", *Client.model_fields)}  # fmt: skip
"""Settings that may change when a run continues: they do not affect the results."""


class Run:
    """The folder of a run and its settings. Make one with :meth:`create` or :meth:`open`."""

    def __init__(self, folder: RunDirectory, config: Config, command: str = "") -> None:
        self.folder, self.config, self.command = folder, config, command

    @classmethod
    def create(
        cls, path: str | Path | None, config: Config | None = None, *, command: str = ""
    ) -> Run:
        """Make the folder of a new run and write its settings, without secrets.

        Args:
            path: the folder; ``None``: ``runs/<date>-...``.
            config: the settings; ``None``: the defaults.
            command: the command that fills it: ``eval`` or ``train``; empty: either.

        Raises:
            ConfigError: the folder exists and is not empty, or cannot be written.
        """
        config = config or Config()
        name = f"{command or 'run'}-{config.env.name.partition(':')[0]}"
        about = {"made_by": "swarm-ui", "command": command, "label": note_on(config.env)}
        document = {**about, **config.plain()}
        folder = None if path is None else Path(path)
        return cls(RunDirectory.create(folder, name=name, config=document), config, command)

    @classmethod
    def open(
        cls,
        path: str | Path,
        overrides: Sequence[str] = (),
        *,
        command: str = "",
        trust: bool = True,
    ) -> Run:
        """Open the folder of a run to continue it, or to evaluate a trained team.

        Args:
            path: the folder.
            overrides: ``section.name=value`` of settings that do not affect the results: the
                place, the endpoint and its limits, logs.
            command: the command that must have begun it; empty: any.
            trust: whether the settings in the folder may import code and open connections.

        Raises:
            ConfigError: there is no such run, an override is wrong or would affect the results, or
                the settings need trust.
        """
        folder = RunDirectory.open_to_read(Path(path))
        begun = str(folder.config().get("command", ""))
        if command and begun not in ("", command):
            raise ConfigError(f"'{path}' is not a run of: swarm-ui {command}")
        stored = stored_config(folder)
        base = stored.plain()
        config = load(base=base, overrides=overrides, learning=False) if overrides else stored
        for name in _differences(base, config.plain(), "", begun != "eval"):
            raise ConfigError(f"{name}: cannot be changed in a run that has begun")
        if not trust:
            expect_trust(folder.path, config, overrides)
        return cls(folder, config, begun)

    @property
    def path(self) -> Path:
        """The folder."""
        return self.folder.path

    @property
    def adapters(self) -> Path:
        """The folder of the trained adapters."""
        return self.folder.adapters

    @property
    def trained(self) -> bool:
        """Whether a training has finished here."""
        return any(self.adapters.glob("*/adapter_config.json"))

    def tested(self) -> tuple[Config, FilledTeam]:
        """The settings and the team of an evaluation.

        After a training they are those of the trained team: its replies are greedy, its edges are
        the learned or the fixed ones, or new random ones, and no server acts.
        """
        config = self.config
        if not self.trained:
            return config, config.team.filled(learning=False)
        cold: dict[str, object] = {"temperature": None, "temperatures": ()}
        if config.train.edges == "learned":
            cold["edges"] = str(self.path)
        team = config.team.filled(learning=True).model_copy(update=cold)
        model: dict[str, object] = {"adapters": str(self.adapters)}
        if isinstance(config.model, Language):
            model["actor"] = None
        # The tasks of the test are others where the environment has splits.
        tasks = () if config.env.splits else config.env.tasks
        update = {
            "env": config.env.model_copy(update={"tasks": tasks}),
            "model": config.model.model_copy(update=model),
        }
        return config.model_copy(update=update), team

    def words(self, command: str, settings: Sequence[str] = ()) -> list[str]:
        """The words of the command that continues the run, or evaluates its trained team.

        ``settings``: those of the evaluation of a trained team, which the folder does not keep.
        """
        trust = ["--trust"] if any(demands(self.config)) else []
        if command == "eval" and self.command != "eval":
            return ["swarm-ui", "eval", str(self.path), *settings, *trust]
        return ["swarm-ui", command, "--resume", str(self.path), *trust]

    def logged_settings(self) -> dict[str, Any]:
        """The settings that loggers receive."""
        values = self.config.plain()
        return {"command": self.command, **{k: values[k] for k in ("env", "model", "team", "eval")}}


def stored_config(folder: RunDirectory) -> Config:
    """The settings in the folder of a run. Raises ``ConfigError`` if they cannot be read."""
    document = dict(folder.config())
    if document.pop("made_by", None) != "swarm-ui":
        raise ConfigError(f"'{folder.path}' has no settings of swarm-ui's commands")
    values = {name: value for name, value in document.items() if name not in ("command", "label")}
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigError(
            f"'{folder.path}/config.json' cannot be read: {where}: {first['msg']}; it "
            "may be of another version of swarm-ui"
        ) from error


def _differences(
    before: Mapping[str, Any], now: Mapping[str, Any], at: str, evaluated: bool
) -> Iterator[str]:
    """Settings that differ and affect the results. ``evaluated``: the run is not an evaluation, so
    the settings of one may change."""
    for key in dict.fromkeys([*before, *now]):
        name = f"{at}.{key}" if at else key
        old, new = before.get(key), now.get(key)
        free = name in _FREE or (name == "eval" and evaluated)
        if isinstance(old, dict) and isinstance(new, dict) and not free:
            yield from _differences(old, new, name, evaluated)
        elif old != new and not free:
            yield name


def expect_trust(
    folder: Path, config: Config, overrides: Sequence[str] = (), *, plays: bool = True
) -> None:
    """Raise ``ConfigError`` if the settings of a folder run code or open connections.

    ``overrides``: those that the user gave, which need no permission. ``plays``: whether the
    environment is opened too."""
    given = [word.partition("=")[0].rpartition(" ")[2] for word in overrides]
    found = [what for setting, what in demands(config, plays=plays)
             if not any(name.startswith(setting) for name in given)]  # fmt: skip
    if found:
        raise ConfigError(
            f"the settings in '{folder}' would {', and '.join(found)}; nothing was done. Give "
            "--trust if you know who wrote this folder, or give these settings yourself"
        )


def demands(config: Config, *, plays: bool = True) -> Iterator[tuple[str, str]]:
    """What settings do that needs the user's consent if they come from a folder: the setting, and
    what it does. ``plays``: whether the environment is opened."""
    if plays:
        called = [("env.wrap", text, "a wrapper") for text in config.env.wrap if is_users(text)]
        called += [("run.log", name, "a logger") for name in config.run.log if name not in LOGGERS]
        called += [("train.loss", config.train.loss, "the loss")] if config.train.loss else []
        if isinstance(config.env, UserBenchmark):
            called.append(("env.name", config.env.name, "the environment"))
        if config.critic.kind not in ("", *CRITICS):
            called.append(("critic.kind", config.critic.kind, "the critic"))
        for setting, name, what in called:
            yield setting, f"import and call '{name}' ({what})"
        if isinstance(config.place, Ray) and config.place.address:
            yield "place", f"send its work to the Ray cluster at {config.place.address}"
        for name in config.run.log:
            if name in LOGGERS and name != "tensorboard":  # which only writes into the folder
                yield "run.log", f"send settings and metrics to {name}"
    yield from _of_model(config.model, "model")
    if config.critic.model is not None:
        yield from _of_model(config.critic.model, "critic.model")


def _of_model(model: AnyModel, at: str) -> Iterator[tuple[str, str]]:
    if isinstance(model, Code) and model.script is None:
        yield f"{at}.name", f"import and call '{model.name}' (the model)"
    if isinstance(model, Language) and is_hub_name(model.name) and not os.path.isdir(model.name):
        yield f"{at}.name", f"download '{model.name}' from the Hugging Face Hub"
    client = model if isinstance(model, Endpoint) else getattr(model, "actor", None)
    if client is not None:
        at = at if client is model else f"{at}.actor"
        address = without_credentials(client.url or os.environ.get("OPENAI_BASE_URL", ""))
        yield f"{at}.url", f"connect to {address} with the key in the variable {client.key_env}"
        if client.key_env != Client.model_fields["key_env"].default:
            yield f"{at}.key_env", f"send the variable {client.key_env} to {address}"


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, also where an event loop already runs, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # there is none
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
