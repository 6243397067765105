"""Settings of runs on disk: read back, and changed where a resumed run permits it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import Config, Draft, Finding, RaySection, checked, plain
from swarm_ui.experiment.permissions import expect_trust
from swarm_ui.experiment.runs.config_checks import config_findings
from swarm_ui.experiment.runs.run_settings import Run
from swarm_ui.storage.run_directory import RunDirectory

_FREE = {
    *(("model", name) for name in ("url", "actor", "actor_name", "key_env", "device", "max_calls",
                                   "max_tokens_total", "rate_limit", "concurrency", "timeout",
                                   "token_field")),
    *(("run", name) for name in ("concurrency", "fail_under", "max_masked", "report", "log", "on")),
    *(("ray", name) for name in RaySection.__struct_fields__),
    *(("critic", name) for name in ("url", "key_env", "max_calls", "max_tokens_total")),
}  # fmt: skip
"""Settings that may change when a run is resumed: they do not affect the results."""


def resume(
    path: Path,
    command: str,
    overrides: Draft,
    given: Sequence[str] = (),
    *,
    trusted: bool = False,
) -> Run:
    """Read the settings of an interrupted run, with permitted changes.

    Args:
        path: its folder.
        command: the command that started it.
        overrides: settings given with ``--resume``, not in a file.
        given: other given options, which are not allowed.
        trusted: the folder may import code and open connections; see :func:`expect_trust`.

    Raises:
        ConfigError: another command started it, or a setting is wrong, or its change would affect
            the results.
    """
    directory = RunDirectory.open_to_read(path)
    document = directory.config()
    if (document.get("made_by"), document.get("command")) != ("swarm-ui", command):
        raise ConfigError(
            f"'{path}' is not a run of: swarm-ui {command}; give the folder of such a run"
        )
    fixed = [place for name, place in overrides.places.items() if name[:2] not in _FREE]
    for place in dict.fromkeys([*given, *fixed]):
        overrides.mistakes.append(f"{place}: cannot be changed in a run that has begun")
    values = plain(configuration_of(path))
    changed = {name[:2] for name in overrides.places}
    for section, name in _FREE & changed:
        values[section][name] = overrides.values[section][name]

    def find(config: Config, valid: Collection[str]) -> Iterator[Finding]:
        # The others were checked when the run began, perhaps by another version.
        for name, problem in config_findings(config, valid, overrides, train=command == "train"):
            if name[:2] in changed:
                yield name, problem

    config = checked(Draft(values, overrides.places, overrides.mistakes), find=find)
    expect_trust(path, config, overrides.places, trusted=trusted)
    try:
        splits = msgspec.convert(document.get("splits", []), tuple[str, ...])
        seeds = msgspec.convert(document.get("seeds", []), tuple[int, ...])
    except msgspec.ValidationError as error:
        raise ConfigError(f"'{path}/config.json' cannot be read: {error}") from error
    return Run(config, command, splits, seeds, directory)


def configuration_of(path: Path) -> Config:
    """The settings of a run of ``run``, ``eval`` or ``train``. Raises ``ConfigError``."""
    document = dict(RunDirectory.open_to_read(path).config())
    if document.pop("made_by", None) != "swarm-ui":
        raise ConfigError(f"'{path}' is not a run of the command swarm-ui; give --config FILE")
    for name in ("command", "splits", "seeds"):
        document.pop(name, None)
    if isinstance(document.get("critic"), bool):  # as versions without [critic] wrote it
        document["critic"] = {"kind": "" if document["critic"] else "outcome"}
    try:
        return msgspec.convert(document, Config)
    except msgspec.ValidationError as error:
        raise ConfigError(f"'{path}/config.json' cannot be read: {error}") from error
