"""What can be found out about this machine without changing anything."""

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
from pathlib import Path
from typing import Literal

from swarm_ui.errors import ConfigError, ModelError

AREAS = ("core", "train", "gpu", "web", "android", "endpoint", "mind2web")
"""What ``doctor --need`` takes."""
_CORE = ("msgspec", "networkx", "openai", "rich", "typer", "PIL")
_EXTRAS: dict[str, tuple[str, tuple[str, ...]]] = {
    "train": ("agents in this process, and learning",
              ("torch", "transformers", "peft", "trl", "safetensors", "numpy", "matplotlib")),
    "web": ("real web pages", ("websockets", "miniwob")),
    "mind2web": ("the flattened copy of Mind2Web", ("pyarrow",)),
    "gym": ("Gymnasium and PettingZoo views", ("gymnasium", "pettingzoo")),
    "tensorboard": ("learning curves in TensorBoard", ("tensorboard",)),
    "telemetry": ("spans of runs", ("opentelemetry",)),
    "notebook": ("notebooks", ("jupyterlab", "ipykernel")),
    "ray": ("Ray, which nothing here uses yet", ("ray",)),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked for."""

    area: str
    name: str
    state: Literal["ok", "missing", "absent"]
    """``absent``: not there, and nothing that was asked for needs it."""
    found: str
    do: str = ""
    """What to do about it."""


def checks(url: str | None, model: str | None, key_env: str, needed: frozenset[str]) -> list[Check]:
    """Everything that is looked for; what is needed and absent is missing."""
    found = [
        *_python(),
        *_extras(),
        *_gpu(),
        *_browser(),
        *_android(),
        *_endpoint(url, model, key_env),
    ]
    wanted = needed | {"core"} | ({"endpoint"} if url else frozenset())
    return [
        replace(check, state="missing")
        if check.state == "absent" and check.area in wanted
        else check
        for check in found
    ]


def _python() -> Iterator[Check]:
    new = sys.version_info >= (3, 11)
    yield Check(
        area="core",
        name="Python",
        state="ok" if new else "absent",
        found=f"{platform.python_version()}, {os.cpu_count()} cores, {platform.system()}",
        do="" if new else "install Python 3.11 or newer",
    )
    yield _modules("core", "swarm-ui", _CORE, "pip install swarm-ui")
    agent = importlib.util.find_spec("swarm_ui.nodes.models.tiny_agent")
    place = Path(agent.origin or "").parent / "base_agent" if agent else Path()
    whole = (place / "model.safetensors").is_file() and (place / "words.json").is_file()
    yield Check(
        area="core",
        name="base agent",
        state="ok" if whole else "absent",
        found="ships with swarm-ui" if whole else f"no weights in {place}",
        do="" if whole else "install swarm-ui again: its files are incomplete",
    )


def _extras() -> Iterator[Check]:
    for extra, (what, modules) in _EXTRAS.items():
        check = _modules(extra, f"extra {extra}", modules, f"pip install 'swarm-ui[{extra}]'")
        yield check if check.state == "ok" else replace(check, found=f"{what}: {check.found}")


def _modules(area: str, name: str, modules: tuple[str, ...], do: str) -> Check:
    lacking = [module for module in modules if importlib.util.find_spec(module) is None]
    if lacking:
        return Check(
            area=area, name=name, state="absent", found=f"lacks {', '.join(lacking)}", do=do
        )
    known = [f"{module} {version}" for module in modules if (version := _version(module))]
    return Check(area=area, name=name, state="ok", found=", ".join(known))


@cache
def _distributions() -> Mapping[str, list[str]]:
    """By module; finding out reads the records of everything that is installed."""
    return importlib.metadata.packages_distributions()


def _version(module: str) -> str:
    names = _distributions().get(module) or [module]
    try:
        return importlib.metadata.version(names[0])
    except importlib.metadata.PackageNotFoundError:
        return ""


def _gpu() -> Iterator[Check]:
    if importlib.util.find_spec("torch") is None:
        return
    import torch

    if torch.cuda.is_available():
        device = torch.cuda.get_device_properties(0)
        told = f"{torch.cuda.device_count()} x {device.name}, {device.total_memory / 2**30:.0f} GiB"
        yield Check(area="gpu", name="GPU", state="ok", found=told)
    elif torch.backends.mps.is_available():
        yield Check(area="gpu", name="GPU", state="ok", found="Apple (mps)")
    else:
        yield Check(
            area="gpu",
            name="GPU",
            state="absent",
            found=f"none that torch {torch.__version__} can use; the base agent needs none",
            do="for large models: a CUDA build of torch, or --url with a model served elsewhere",
        )


def _browser() -> Iterator[Check]:
    from swarm_ui.environments.miniwob import find_browser
    from swarm_ui.environments.miniwob.browser import INSTALL_HINT

    try:
        binary = find_browser()
    except ConfigError as error:
        yield Check(area="web", name="browser", state="absent", found="", do=str(error))
        return
    if binary is None:
        yield Check(area="web", name="browser", state="absent", found="", do=INSTALL_HINT)
        return
    told = _said([str(binary), "--version"])
    yield Check(
        area="web",
        name="browser",
        state="ok" if told else "absent",
        found=f"{told or 'does not start:'} ({binary})",
        do="" if told else f"run it to see why: {binary} --version",
    )


def _android() -> Iterator[Check]:
    from swarm_ui.environments.androidworld.emulator import Emulator

    device = Emulator()
    adb = shutil.which(os.path.expanduser(device.adb_path)) or shutil.which("adb")
    yield Check(
        area="android",
        name="adb",
        state="ok" if adb else "absent",
        found=adb or "",
        do="" if adb else "install Android's platform-tools (Android Studio, SDK Manager)",
    )
    ports = f"ports {device.console_port} and {device.grpc_port}"
    listens = device.listens()
    yield Check(
        area="android",
        name="emulator",
        state="ok" if listens else "absent",
        found=f"answers on {ports}" if listens else f"nothing answers on {ports}",
        do=""
        if listens
        else f"start it: emulator -avd AndroidWorldAvd -no-snapshot -grpc {device.grpc_port}",
    )
    apart = os.environ.get("SWARM_UI_ANDROID_WORLD_PYTHON", "")
    here = importlib.util.find_spec("android_world") is not None
    yield Check(
        area="android",
        name="android_world",
        state="ok" if here or Path(apart).is_file() else "absent",
        found="installed here" if here else apart,
        do=""
        if here or Path(apart).is_file()
        else "install it in a Python of its own and set "
        "SWARM_UI_ANDROID_WORLD_PYTHON to it; CONTRIBUTING.md says how",
    )


def _endpoint(url: str | None, model: str | None, key_env: str) -> Iterator[Check]:
    key = "set" if os.environ.get(key_env) else "not set"
    address = url or os.environ.get("OPENAI_BASE_URL")
    if not address:
        yield Check(
            area="endpoint",
            name="endpoint",
            state="absent",
            found=f"none named; key in {key_env}: {key}",
            do="to look at one: swarm-ui doctor --url http://localhost:8000/v1",
        )
        return
    from swarm_ui.nodes.models.openai.failures import without_credentials

    shown = without_credentials(address)
    try:
        served = asyncio.run(_served(address, model, key_env))
    except (ModelError, ConfigError) as error:
        yield Check(area="endpoint", name="endpoint", state="absent",
                    found=f"{shown}; key in {key_env}: {key}", do=str(error))  # fmt: skip
        return
    names = ", ".join(served[:6]) + (", …" if len(served) > 6 else "")
    yield Check(area="endpoint", name="endpoint", state="ok",
                found=f"{shown} serves {names or 'some'}; key in {key_env}: {key}")  # fmt: skip


async def _served(url: str, model: str | None, key_env: str) -> tuple[str, ...]:
    """The models that are served. Raises ``ModelError`` if the named one is not."""
    from swarm_ui.budget import Budget
    from swarm_ui.nodes import OpenAIModel, RateLimits, RetryPolicy
    from swarm_ui.nodes.models.openai.endpoint import Endpoint

    if model is not None:
        named = OpenAIModel(model, url, api_key_env=key_env)
        try:
            return await named.check()
        finally:
            await named.close()
    endpoint = Endpoint("any", url, key=None, key_env=key_env, limits=RateLimits(),
                        retry=RetryPolicy(timeout=5.0), budget=Budget())  # fmt: skip
    try:
        return await endpoint.served(5.0) or ()
    finally:
        await endpoint.close()


def _said(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().splitlines()[-1] if done.returncode == 0 and done.stdout else ""
