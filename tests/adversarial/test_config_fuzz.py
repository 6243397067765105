"""Any configuration is read or refused with a ``ConfigError``; what is read can be saved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from cli_world import LAMP, Shell
from damage import Edit, damaged, edits
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import Config
from swarm_ui.experiment.loading import load, setting_names, template
from swarm_ui.storage.run_directory import RunDirectory

SETTINGS = setting_names("invented")
WORDS = ("base", "phone", "miniwob", "random", "chain", "served", "script:x", "a:b", "parameters",
         "shuffle", "agent_0>agent_1", "../..", "/", "~", "\0", "x" * 5000)  # fmt: skip
scalars = (
    st.sampled_from(WORDS) | st.text() | st.booleans() | st.none()
    | st.integers() | st.integers(-(2**70), 2**70) | st.floats()
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
names = st.sampled_from(SETTINGS) | st.text(st.sampled_from("abc.[]=\"'#\n-_é\0"), max_size=12)


def as_toml(value: Any) -> str:
    """A value in TOML's notation, or something that is nearly it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {as_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(as_toml, value))}]"
    return {"Infinity": "inf", "NaN": "nan"}.get(json.dumps(value), json.dumps(value))


chosen = st.lists(st.tuples(names, values), max_size=4).map(
    lambda lines: "\n".join(f"{name} = {as_toml(value)}" for name, value in lines)
)
"""Settings of any values."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that is written again and again."""
    return tmp_path_factory.mktemp("fuzz") / "a.toml"


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from([template(), ""]), edits(), chosen | st.text(),
    st.lists(st.tuples(names, values | st.text()), max_size=3),
)  # fmt: skip
def test_any_file_and_any_setting(
    path: Path, start: str, changes: list[Edit], more: str, sets: list[tuple[str, Any]]
) -> None:
    text = more.encode("utf-8", "surrogatepass") + b"\n" + start.encode()
    path.write_bytes(damaged(text, changes))
    try:
        config = load(path, [f"{name}={as_toml(value)}" for name, value in sets])
    except ConfigError as error:
        assert 0 < len(str(error)) < 100_000
        return
    folder = RunDirectory.create(path.parent / uuid4().hex, config=config.plain())
    assert Config.model_validate(folder.config()) == config


DEEP, LONG = 100_000, "9" * 5000
ABSURD = {
    "deep array": "[team]\nseed = " + "[" * DEEP,
    "deep table": "[" + ".".join(["train"] + ["a"] * 3000) + "]",
    "deep inline table": "x = " + "{a = " * DEEP,
    "deep keys": "train." + "a." * 3000 + "b = 1",
    "long integer": f"[team]\nseed = {LONG}",
    "long hexadecimal integer": f"[team]\nseed = 0x{LONG}",
    "large integer": f"[eval]\nseed = {2**63}",
    "infinite": "[team]\ntemperature = inf",
    "not a number": "[model]\ntimeout = nan",
    "bytes": b"\xff\xfe\x00",
    "a setting as a word": [
        f"team.seed={LONG}", "team.seed=" + "[" * DEEP, "train." + "a." * 3000 + "b=1",
        f"eval.seed=0x{LONG}", "team.temperature=inf", f"model.name={'x' * 5000}",
        f"team.edges={'x' * 5000}", f"model.adapters={'x' * 5000}",
    ],
}  # fmt: skip


@pytest.mark.parametrize("absurd", ABSURD.values(), ids=list(ABSURD))
def test_absurd_settings_are_wrong_usage(shell: Shell, absurd: str | bytes | list[str]) -> None:
    line = f"eval {LAMP} -a 2 -m script:right.txt --json"
    if not isinstance(absurd, list):
        Path("a.toml").write_bytes(absurd if isinstance(absurd, bytes) else absurd.encode())
        line, absurd = f"{line} -c a.toml", ["team.rounds=1"]
    for setting in absurd:
        done = shell("", *line.split(), setting)
        assert done.code == done.json["exit"] == 2, done.err
        assert len(done.json["message"]) < 20_000 and "Traceback" not in done.err
    assert not Path("runs").exists()


@pytest.mark.parametrize("text", ["[" * DEEP, '{"a":' * DEEP, f'{{"arms": {LONG}}}', "", "\0"])
def test_absurd_documents_of_a_run_are_refused(shell: Shell, text: str) -> None:
    shell(f"eval {LAMP} -n 1 -m script:right.txt --out r")
    for name, lines in (
        ("results.json", ["compare r r"]),
        ("config.json", ["eval --resume r", "replay r --again", "export r episodes"]),
    ):
        Path("r", name).write_text(text, encoding="utf-8")
        for line in lines:
            done = shell(line)
            assert done.code == 2 and "cannot be read" in done.err, (line, done.err[-500:])
        done = shell("view r --no-open")  # it shows what can be read
        assert done.code in (0, 2) and "Traceback" not in done.err, done.err[-500:]
