"""Checks of this machine, which change nothing."""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Literal

from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.nodes.models.tiny_agent.shipped_agents import SHIPPED_AGENTS
from swarm_ui.storage.run_directory import installed

AREAS = ("core", "train", "gpu", "web", "handset", "android", "endpoint", "mind2web")
"""The areas that ``doctor --need`` accepts."""
_CORE = ("msgspec", "networkx", "openai", "rich", "typer", "PIL", "pydantic")
_EXTRAS: dict[str, tuple[str, tuple[str, ...]]] = {
    "train": ("agents in this process, and learning",
              ("torch", "transformers", "peft", "trl", "safetensors", "numpy", "matplotlib")),
    "web": ("real web pages", ("playwright", "miniwob")),
    "mind2web": ("the flattened copy of Mind2Web", ("datasets",)),
    "gym": ("Gymnasium and PettingZoo views", ("gymnasium", "pettingzoo")),
    "tensorboard": ("learning curves in TensorBoard", ("tensorboard",)),
    "wandb": ("metrics in Weights & Biases", ("wandb",)),
    "mlflow": ("metrics in MLflow", ("mlflow",)),
    "telemetry": ("spans of runs", ("opentelemetry",)),
    "notebook": ("notebooks", ("jupyterlab", "ipykernel")),
    "ray": ("episodes in a Ray cluster", ("ray",)),
}  # fmt: skip
_GUIDE = "docs/howto/android_emulator.md"


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


def checks(url: str | None, model: str | None, key_env: str, needed: frozenset[str]) -> list[Check]:
    """Run all checks. A part that is needed and absent gets the state ``missing``."""
    wanted = needed | {"core"} | ({"endpoint"} if url else frozenset())
    found = chain(_installed(), _plugins(), _gpu(), _pretrained(), _browser(), _android(),
                  _endpoint(url, model, key_env))  # fmt: skip
    return [replace(each, state="missing") if each.state == "absent" and each.area in wanted
            else each for each in found]  # fmt: skip


def _check(area: str, name: str, ok: object, found: str, do: str) -> Check:
    """A check with the status ``ok`` or ``absent``. ``do``: how to install an absent part."""
    return Check(area, name, "ok" if ok else "absent", found, "" if ok else do)


def _installed() -> Iterator[Check]:
    about = f"{platform.python_version()}, {os.cpu_count()} cores, {platform.system()}"
    yield _check("core", "Python", sys.version_info >= (3, 11), about,
                 "install Python 3.11 or newer")  # fmt: skip
    yield _modules("core", "swarm-ui", _CORE, "pip install swarm-ui")
    for agent, place in SHIPPED_AGENTS.items():
        whole = (place / "model.safetensors").is_file() and (place / "words.json").is_file()
        found = "ships with swarm-ui" if whole else f"no weights in {place}"
        yield _check("core", f"{agent} agent", whole, found,
                     "install swarm-ui again: its files are incomplete")  # fmt: skip
    for extra, (what, modules) in _EXTRAS.items():
        check = _modules(extra, f"extra {extra}", modules, f"pip install 'swarm-ui[{extra}]'")
        yield check if check.state == "ok" else replace(check, found=f"{what}: {check.found}")


def _modules(area: str, name: str, modules: tuple[str, ...], do: str) -> Check:
    lacking = [module for module in modules if importlib.util.find_spec(module) is None]
    names = [(_distributions().get(module) or [module])[0] for module in modules]
    known = installed(names)
    versions = [f"{m} {known[n]}" for m, n in zip(modules, names, strict=True) if known.get(n)]
    found = f"lacks {', '.join(lacking)}" if lacking else ", ".join(versions)
    return _check(area, name, not lacking, found, do)


@cache
def _distributions() -> Mapping[str, list[str]]:
    """The distributions of each module; to read the metadata of all packages takes time."""
    return importlib.metadata.packages_distributions()


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


def _pretrained() -> Iterator[Check]:
    from swarm_ui.nodes.models.pretrained.catalogue import PRETRAINED, pulled_folder

    for name, model in PRETRAINED.items():
        folder = pulled_folder(name)
        found = f"{model.title} in {folder}" if folder else f"{model.title}: not on this machine"
        yield _check("pretrained", name, folder, found, f"swarm-ui models pull {name}")


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
    from swarm_ui.environments.androidworld.environment import Emulator
    from swarm_ui.environments.androidworld.process import PYTHON

    python = os.environ.get(PYTHON, "") or sys.executable
    probe = "import android_world.registry, swarm_ui.environments.androidworld.process; print(1)"
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


def _endpoint(url: str | None, model: str | None, key_env: str) -> Iterator[Check]:
    key = "set" if os.environ.get(key_env) else "not set"
    address = url or os.environ.get("OPENAI_BASE_URL")
    shown, problem = "none named", "to look at one: swarm-ui doctor --url http://localhost:8000/v1"
    if address:
        from swarm_ui.addresses import without_credentials

        shown, problem = without_credentials(address), ""
        try:
            shown += asyncio.run(_answered(address, model, key_env))
        except (ModelError, ConfigError) as error:
            problem = str(error)
    yield _check("endpoint", "endpoint", not problem, f"{shown}; key in {key_env}: {key}", problem)


async def _answered(url: str, model: str | None, key_env: str) -> str:
    """The models that are served, and the one that answered a request such as agents send. Raises
    ``ConfigError`` if no model is named, and not exactly one is served."""
    from swarm_ui.experiment.model_settings import Endpoint
    from swarm_ui.experiment.models import open_model
    from swarm_ui.model import Decision
    from swarm_ui.nodes import AgentNode, OpenAIModel
    from swarm_ui.observation import Element, Observation

    listing = OpenAIModel(model or "any", url, api_key_env=key_env)
    try:
        served = await listing.served()
    finally:
        await listing.close()
    names = [each.name for each in served if each.parent is None]
    if model is None and len(names) != 1:
        raise ConfigError(
            f"expected one served model, which can be asked, got {', '.join(names[:6]) or 'no'}"
            " models; name the one that you use with --model NAME"
        )
    name = model or names[0]
    screen = Observation(goal="save", elements=(Element(index=0, role="button", text="Save"),))
    async with open_model(Endpoint(name=name, url=url, key_env=key_env)) as asked:
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
