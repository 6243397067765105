"""Any configuration is read or refused with a ``ConfigError``; what is read can be saved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from cli_world import LAMP, Shell, shell  # noqa: F401
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import Config
from swarm_ui.experiment.loading import load, setting_names, template
from swarm_ui.storage.run_directory import RunDirectory

SECTIONS = ("env", "model", "team", "eval", "run", "train")
SETTINGS = setting_names("invented")
TEMPLATE = template()
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
    if isinstance(value, float):
        return {"Infinity": "inf", "-Infinity": "-inf", "NaN": "nan"}.get(
            json.dumps(value), json.dumps(value)
        )
    return json.dumps(value)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """The file that ``init`` writes, with a part cut out, doubled or replaced."""
    start = draw(st.integers(0, len(TEMPLATE)))
    end = draw(st.integers(start, min(len(TEMPLATE), start + 60)))
    middle = draw(st.sampled_from(["", TEMPLATE[start:end] * 2]) | st.text() | values.map(as_toml))
    return TEMPLATE[:start] + middle + TEMPLATE[end:]


@st.composite
def structured(draw: st.DrawFn) -> str:
    """Sections with settings of any values."""
    lines = []
    for section in draw(st.lists(st.sampled_from(SECTIONS), unique=True)):
        lines.append(f"[{section}]")
        known = [s.partition(".")[2] for s in SETTINGS if s.startswith(section)] or ["x"]
        chosen = draw(st.dictionaries(st.sampled_from(known), values, max_size=4))
        lines += [f"{name} = {as_toml(value)}" for name, value in chosen.items()]
    return "\n".join(lines)


texts = structured() | mutated() | st.text()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that is written again and again."""
    return tmp_path_factory.mktemp("fuzz") / "a.toml"


def read(path: Path, text: str, sets: list[str]) -> None:
    """Read a configuration, and save what was read."""
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        config = load(path, sets)
    except ConfigError as error:
        assert 0 < len(str(error)) < 100_000
        return
    folder = RunDirectory.create(path.parent / uuid4().hex, config=config.plain())
    assert Config.model_validate(folder.config()) == config


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(texts, st.lists(st.tuples(names, values | st.text()), max_size=3))
def test_any_file_and_any_setting(path: Path, text: str, sets: list[tuple[str, Any]]) -> None:
    read(path, text, [f"{name}={as_toml(value)}" for name, value in sets])


DEEP, LONG = 100_000, "9" * 5000
ABSURD = {
    "deep array": "[team]\nseed = " + "[" * DEEP,
    "deep table": "[" + ".".join(["train"] + ["a"] * 3000) + "]",
    "deep inline table": "x = " + "{a = " * DEEP,
    "deep keys": "train." + "a." * 3000 + "b = 1",
    "long integer": f"[team]\nseed = {LONG}",
    "long hexadecimal integer": f"[team]\nseed = 0x{LONG}",
    "large integer": f"[eval]\nseed = {2**63}",
    "large integer for training": f"[train]\nseed = {2**70}",
    "infinite": "[team]\ntemperature = inf",
    "not a number": "[model]\ntimeout = nan",
    "bytes": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("text", ABSURD.values(), ids=list(ABSURD))
def test_absurd_files_are_wrong_usage(shell: Shell, text: str | bytes) -> None:  # noqa: F811
    Path("a.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    done = shell(f"eval {LAMP} -c a.toml -m script:right.txt --json")
    assert done.code == done.json["exit"] == 2, done.err
    assert len(done.json["message"]) < 500 and "Traceback" not in done.err
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    "setting",
    [f"team.seed={LONG}", "team.seed=" + "[" * DEEP, "train." + "a." * 3000 + "b=1",
     f"eval.seed=0x{LONG}", "team.temperature=inf", f"model.name={'x' * 5000}",
     f"team.edges={'x' * 5000}", f"model.adapters={'x' * 5000}"],
    ids=range(8),
)  # fmt: skip
def test_absurd_settings_are_wrong_usage(shell: Shell, setting: str) -> None:  # noqa: F811
    words = f"eval {LAMP} -a 2 model.name=script:right.txt --json"
    done = shell("", *words.split(), setting)
    assert done.code == done.json["exit"] == 2, done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("name", ["config.json", "results.json"])
@pytest.mark.parametrize("text", ["[" * DEEP, '{"a":' * DEEP, f'{{"arms": {LONG}}}', "", "\0"])
def test_absurd_documents_of_a_run_are_refused(shell: Shell, name: str, text: str) -> None:  # noqa: F811
    shell(f"eval {LAMP} -n 1 -m script:right.txt --out r")
    Path("r", name).write_text(text, encoding="utf-8")
    lines = {"config.json": ("eval --resume r", "replay r --again", "export r episodes", "view r "
                             "--no-open"), "results.json": ("compare r r", "view r "
                             "--no-open")}[name]  # fmt: skip
    for line in lines:
        done = shell(f"{line}")
        if line.startswith("view"):  # it shows what can be read
            assert done.code in (0, 2) and "Traceback" not in done.err, (line, done.err[-500:])
        else:
            assert done.code == 2 and "cannot be read" in done.err, (line, done.err[-500:])
