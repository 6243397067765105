"""``doctor``: checks of this machine, which change nothing."""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Literal

import msgspec
from rich.text import Text

from swarm_ui.cli import exits, flags
from swarm_ui.cli.output import table
from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.storage.run_directory import installed

AREAS = ("core", "train", "gpu", "web", "handset", "android", "endpoint", "mind2web")
"""The areas that ``doctor --need`` accepts."""
_OTHERS = ("dev", "docs", "android", "gptswarm", "vllm")
"""Extras for developers, and for a Python of their own."""
_KEY, _GUIDE = "OPENAI_API_KEY", "docs/howto/android_emulator.md"


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check."""

    area: str
    name: str
    state: Literal["ok", "missing", "absent"]
    """``absent``: not found, and not needed for what was requested."""
    found: str
    do: str = ""
    """How to fix the problem."""


_MARKS = {"ok": ("ok", "green"), "missing": ("MISSING", "bold red"), "absent": ("–", "dim")}


@flags.command(
    flags.URL,
    flags.option("model", str, "NAME", "what --url should serve (default: any)", "-m", panel=""),
    flags.option("need", list[str], "AREA", f"exit with 1 if one is missing: {', '.join(AREAS)}; "
                 "repeatable", panel="", complete=flags.one_of(*AREAS)),
    flags.JSON,
)  # fmt: skip
def doctor(arguments: flags.Arguments) -> int:
    """Report what is installed and reachable, and how to install what is missing.

    Keys are never shown. Example: [bold]swarm-ui doctor --need train --need web[/]
    """
    output, need = arguments.output, arguments["need"] or []
    if wrong := [area for area in need if area not in AREAS]:
        raise ConfigError(f"--need: no area '{wrong[0]}'; there are {', '.join(AREAS)}")
    found = checks(arguments["url"], arguments["model"], frozenset(need))
    rows = []
    for check in found:
        lines = [Text(check.found)] * bool(check.found)
        lines += [Text(f"→ {check.do}", style="yellow")] * bool(check.do)
        rows.append((check.name, Text(*_MARKS[check.state]), Text("\n").join(lines)))
    made = table("what swarm-ui finds here", ["", "", "found"], rows, left=True)
    made.columns[0].no_wrap = made.columns[1].no_wrap = True
    output.show(made)
    missing = [check.name for check in found if check.state == "missing"]
    code = exits.NOT_GOOD if missing else exits.OK
    return output.done(code, missing=missing, checks=msgspec.to_builtins(found))


def checks(url: str | None, model: str | None, needed: frozenset[str]) -> list[Check]:
    """Run all checks. A part that is needed and absent gets the state ``missing``."""
    wanted = needed | {"core"} | ({"endpoint"} if url else frozenset())
    found = chain(_installed(), _plugins(), _gpu(), _browser(), _android(),
                  _endpoint(url, model))  # fmt: skip
    return [replace(each, state="missing") if each.state == "absent" and each.area in wanted
            else each for each in found]  # fmt: skip


def _check(area: str, name: str, ok: object, found: str, do: str) -> Check:
    """A check with the status ``ok`` or ``absent``. ``do``: how to install an absent part."""
    return Check(area, name, "ok" if ok else "absent", found, "" if ok else do)


def _installed() -> Iterator[Check]:
    about = f"{platform.python_version()}, {os.cpu_count()} cores, {platform.system()}"
    yield _check("core", "Python", sys.version_info >= (3, 11), about,
                 "install Python 3.11 or newer")  # fmt: skip
    groups: dict[str, list[str]] = {}
    for text in importlib.metadata.requires("swarm-ui") or ():
        named = re.search(r"extra == ['\"]([\w-]+)", text)
        groups.setdefault(named[1] if named else "", []).append(re.split(r"[^\w.-]", text)[0])
    for extra, names in groups.items():
        known = installed(names)
        lacking = [name for name in names if name not in known]
        found = f"lacks {', '.join(lacking)}" if lacking else ", ".join(
            f"{name} {version}" for name, version in known.items())  # fmt: skip
        if extra not in _OTHERS:
            yield _check(extra or "core", f"extra {extra}" if extra else "swarm-ui", not lacking,
                         found, f"pip install 'swarm-ui[{extra}]'".replace("[]", ""))  # fmt: skip


def _plugins() -> Iterator[Check]:
    """The names that other packages add. Each is imported, to report what is wrong with it."""
    from swarm_ui.experiment.plugins import KINDS, load, package_of, plugins

    for kind in KINDS:
        for name, entry in plugins(kind).items():
            problem = ""
            try:
                load(kind, name)
            except ConfigError as error:
                problem = str(error)
            found = f"{kind.removesuffix('s')} of {package_of(entry)} ({entry.value})"
            yield _check("plug-in", f"plug-in {name}", not problem, found, problem)


def _gpu() -> Iterator[Check]:
    if importlib.util.find_spec("torch") is None:
        return
    import torch

    found = f"none that torch {torch.__version__} can use; the base agent needs none"
    cuda, apple = torch.cuda.is_available(), torch.backends.mps.is_available()
    if cuda:
        device = torch.cuda.get_device_properties(0)
        memory = f"{device.total_memory / 2**30:.0f} GiB"
        found = f"{torch.cuda.device_count()} x {device.name}, {memory}"
    elif apple:
        found = "Apple (mps)"
    advice = "for large models: a CUDA build of torch, or --url with a model served elsewhere"
    yield _check("gpu", "GPU", cuda or apple, found, advice)


def _browser() -> Iterator[Check]:
    from swarm_ui.environments.web import INSTALL_HINT, find_browser

    binary, hint, found = None, INSTALL_HINT, ""
    try:
        binary = find_browser()
    except ConfigError as error:
        hint = str(error)
    version = _output([str(binary), "--version"]) if binary else ""
    if binary:
        hint = f"run it to see why: {binary} --version"
        found = f"{version or 'does not start:'} ({binary})"
    yield _check("web", "browser", version, found, hint)


def _android() -> Iterator[Check]:
    """What AndroidWorld needs, on the simulated handset and on an emulator."""
    from swarm_ui.environments.androidworld.environment import PYTHON, Emulator

    python = os.environ.get(PYTHON, "") or sys.executable
    probe = (
        "import android_world.registry, swarm_ui.environments.androidworld.environment; print(1)"
    )
    here = str(Path(__file__).resolve().parents[2])
    works = _output([python, "-c", probe], {**os.environ, "PYTHONPATH": here})
    do = f"make a Python with android_world and name it in {PYTHON}: {_GUIDE}, step 1"
    yield _check("handset", "android_world", works, python if works else f"not in {python}", do)
    ffmpeg = shutil.which("ffmpeg")
    yield _check("handset", "ffmpeg", ffmpeg, ffmpeg or "", "install it: sudo apt install ffmpeg")
    device = Emulator()
    adb = shutil.which(os.path.expanduser(device.adb_path)) or shutil.which("adb")
    yield _check("android", "adb", adb, adb or "", f"see {_GUIDE}, step 2")
    listens = device.listens()
    answer = "answers" if listens else "nothing answers"
    yield _check("android", "emulator", listens,
                 f"{answer} on ports {device.console_port} and {device.grpc_port}",
                 "start it: emulator -avd AndroidWorldAvd -no-snapshot -grpc "
                 f"{device.grpc_port}")  # fmt: skip


def _endpoint(url: str | None, model: str | None) -> Iterator[Check]:
    key = "set" if os.environ.get(_KEY) else "not set"
    address = url or os.environ.get("OPENAI_BASE_URL")
    shown, problem = "none named", "to look at one: swarm-ui doctor --url http://localhost:8000/v1"
    if address:
        from swarm_ui.addresses import without_credentials

        shown, problem = without_credentials(address), ""
        try:
            shown += asyncio.run(_answered(address, model))
        except (ModelError, ConfigError) as error:
            problem = str(error)
    yield _check("endpoint", "endpoint", not problem, f"{shown}; key in {_KEY}: {key}", problem)


async def _answered(url: str, model: str | None) -> str:
    """The models that are served, and the one that answered a request such as agents send. Raises
    ``ConfigError`` if no model is named, and not exactly one is served."""
    from swarm_ui.experiment.model_settings import Endpoint
    from swarm_ui.experiment.models import open_model
    from swarm_ui.model import Decision
    from swarm_ui.nodes import AgentNode, OpenAIModel
    from swarm_ui.observation import Element, Observation

    listing = OpenAIModel(model or "any", url)
    try:
        served = await listing.served()
    finally:
        await listing.close()
    names = [each.name for each in served if each.parent is None]
    if model is None and len(names) != 1:
        raise ConfigError(f"it serves {', '.join(names[:6]) or 'no models'}; name the one that you "
                          "use with --model NAME")  # fmt: skip
    name = model or names[0]
    screen = Observation(goal="save", elements=(Element(index=0, role="button", text="Save"),))
    async with open_model(Endpoint(name=name, url=url)) as asked:
        await asked.generate([AgentNode("agent_0", asked).request(Decision(observation=screen))])
    shown = ", ".join(each.name for each in served[:6]) + (", …" if len(served) > 6 else "")
    return f" serves {shown or 'some'}; {name} answers"


def _output(command: list[str], variables: Mapping[str, str] | None = None) -> str:
    """The last line of a command's output; empty if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace",
                              timeout=60, check=False, env=variables)  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = done.stdout.strip().splitlines()
    return lines[-1] if done.returncode == 0 and lines else ""
