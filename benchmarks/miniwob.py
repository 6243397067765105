"""Speed of real MiniWoB++ pages, compared with upstream's Selenium environment and Playwright.

    python benchmarks/miniwob.py [--quick] [--peers [FOLDER]] [--pages N] [-- PIP…]

Measurements:

- **work**: episodes of eight tasks, the same for all: a reset with a seed, then four clicks by
  reference on elements of one kind (boxes, fields, tabs), none of which ends an episode; after
  each, the goal and the elements of the screen are read into Python. A reset counts as one step.
- **steps/s**: resets and clicks per second of wall time, episodes of one task in a row on a page,
  all pages concurrently. Each system runs in a separate process, and samples of all systems are
  interleaved, so that other load on the machine affects all equally; medians over the rounds.
- **ours**: ``--pages`` pages of one browser, in one process. No screenshots, the page's clock off.
- **selenium** (``--peers``): ``miniwob``'s own gymnasium environment, screenshots off, as many
  browsers as there are processors, a thread each. It has the full Chromium, which its chromedriver
  needs.
- **playwright**: its async interface on as many pages and the same browser binary as
  ours, with upstream's own page functions, as Selenium has them: ``core.elementClick`` and
  ``core.getDOMInfo``, one ``evaluate`` for a reset or a click together with the reading of the
  screen; no mouse events, no waiting, no descriptions.
- **playwright_scripts**: the same with our own scripts in the page, so only the
  environment around them differs.

``--peers`` builds an environment with upstream's (default: below ~/.cache/swarm-ui, options for pip
after ``--``), or uses the one in FOLDER. Only packages are downloaded; browsers are the system's.
The figures of a peer that cannot run are null, and ``missing`` gives the reason.

Prints a table, the targets that are missed, and JSON as the last line: ``steps_per_s, vs_selenium,
vs_playwright, vs_playwright_scripts, tasks, pages, selenium_steps_per_s, playwright_steps_per_s,
playwright_scripts_steps_per_s, processors, load, browser, missing, missed, rounds,
cpu_ms_per_step``.
``cpu_ms_per_step`` is the CPU time of all processes of a system, with drivers and browsers. Other
load on the machine changes it less than the rates.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

PINS = ["miniwob==1.1.0"]
TASKS = {  # the tag that upstream gives the elements to click on, and our role
    "click-checkboxes": ("INPUT_checkbox", "checkbox"),
    "click-checkboxes-large": ("INPUT_checkbox", "checkbox"),
    "click-option": ("INPUT_radio", "radio"),
    "click-tab-2": ("A", "link"),
    "enter-password": ("INPUT_password", "field"),
    "form-sequence-2": ("INPUT_radio", "radio"),
    "multi-layouts": ("INPUT_text", "field"),
    "read-table-2": ("INPUT_text", "field"),
}
CLICKS = 4
PEERS = ("selenium", "playwright", "playwright_scripts")
TARGETS = {"steps_per_s": 250.0, "vs_selenium": 3.0, "vs_playwright_scripts": 0.83}
START = """
window.readScreen = () => JSON.stringify({
  done: WOB_DONE_GLOBAL, raw: WOB_RAW_REWARD_GLOBAL, goal: core.getUtterance(),
  dom: core.getDOMInfo(),
});
"""
RESET = """(seed) => {
  core.EPISODE_MAX_TIME = 1e8; core.endEpisode(0); Math.seedrandom(seed);
  core.setDataMode('train'); core.startEpisodeReal(); return readScreen();
}"""
CLICK = "(ref) => { core.elementClick(ref); return readScreen(); }"


# ---- the systems: each serves a line of JSON for a line of JSON --------------------------------


def serve(name: str) -> None:
    """Answer ``{"seconds", "pages", "browser"}`` with ``{"steps", "seconds"}`` until the end."""
    # This file must not hide the package of its name. The path may contain a symbolic link.
    here = Path(__file__).resolve().parent
    sys.path[:] = [p for p in sys.path if Path(p or os.curdir).resolve() != here]
    systems = (ours, selenium, playwright, playwright_scripts)
    sample = {system.__name__: system for system in systems}[name]
    print(json.dumps({"ready": name}), flush=True)
    for line in sys.stdin:
        try:
            answer: dict[str, Any] = dict(sample(**json.loads(line)))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), flush=True)


def ours(seconds: float, pages: int, browser: str, warm: float) -> dict[str, float]:
    from swarm_ui.action import Action
    from swarm_ui.environments.miniwob import MiniWobBrowser, MiniWobEnvironment

    async def sample() -> dict[str, float]:
        async with MiniWobBrowser(pages=pages, binary=Path(browser)) as opened:

            async def play(number: int, env: MiniWobEnvironment, count: Callable[[], bool]) -> None:
                task = list(TASKS)[number % len(TASKS)]
                for seed in range(1_000_000):
                    screen = await env.reset(task=task, seed=seed)
                    shown = [e for e in screen.elements if e.role == TASKS[task][1]]
                    for click in range(CLICKS):
                        if count():
                            return
                        index = shown[click % len(shown)].index
                        await env.step(Action(action_type="click", index=index))
                    if count():
                        return

            return await _both(play, list(enumerate(opened.environments)), warm, seconds)

    return asyncio.run(sample())


def playwright_scripts(seconds: float, pages: int, browser: str, warm: float) -> dict[str, float]:
    """The same work with our own scripts in the page, controlled by Playwright."""
    folder = Path(__file__).absolute().parent.parent / "environments" / "miniwob"
    names = ("page_names.js", "page_screen.js", "page_acts.js")
    script = "\n".join(["(() => {", *((folder / name).read_text() for name in names), "})();"])

    async def open_page(page: Any, url: str) -> None:
        await page.add_init_script(script)
        await page.goto(url)

    async def play(number: int, page: Any, count: Callable[[], bool]) -> None:
        role = TASKS[list(TASKS)[number % len(TASKS)]][1]
        for seed in range(1_000_000):
            screen = json.loads(await page.evaluate("(seed) => swarmUi.reset(seed)", seed))
            shown = [e["index"] for e in screen["elements"] if e["role"] == role]
            for click in range(CLICKS):
                if count():
                    return
                told = {"action_type": "click", "index": shown[click % len(shown)]}
                json.loads(await page.evaluate("(action) => swarmUi.act(action)", told))
            if count():
                return

    return asyncio.run(_with_playwright(open_page, play, seconds, pages, browser, warm))


def playwright(seconds: float, pages: int, browser: str, warm: float) -> dict[str, float]:
    """The minimal work: upstream's own click and its own list of elements, without waiting."""

    async def open_page(page: Any, url: str) -> None:
        await page.goto(url)
        await page.evaluate(START)

    async def play(number: int, page: Any, count: Callable[[], bool]) -> None:
        tag = TASKS[list(TASKS)[number % len(TASKS)]][0]
        for seed in range(1_000_000):
            screen = json.loads(await page.evaluate(RESET, seed))
            refs = list(_refs(screen["dom"], tag))
            for click in range(CLICKS):
                if count():
                    return
                json.loads(await page.evaluate(CLICK, refs[click % len(refs)]))
            if count():
                return

    return asyncio.run(_with_playwright(open_page, play, seconds, pages, browser, warm))


async def _with_playwright(
    open_page: Any, play: Any, seconds: float, pages: int, browser: str, warm: float
) -> dict[str, float]:
    import importlib.util

    from playwright.async_api import async_playwright

    spec = importlib.util.find_spec("miniwob")
    assert spec is not None
    assert spec.origin is not None
    html = Path(spec.origin).parent / "html" / "miniwob"
    async with async_playwright() as tool:
        opened = await tool.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        try:
            shown = []
            for number in range(pages):
                page = await (await opened.new_context()).new_page()
                task = list(TASKS)[number % len(TASKS)]
                await open_page(page, (html / f"{task}.html").as_uri())
                shown.append((number, page))
            return await _both(play, shown, warm, seconds)
        finally:
            await opened.close()


def _refs(node: dict[str, Any], tag: str) -> Any:
    if node["tag"].upper() == tag.upper():
        yield node["ref"]
    for child in node["children"]:
        yield from _refs(child, tag)


async def _both(play: Any, players: Any, warm: float, seconds: float) -> dict[str, float]:
    """Run all players concurrently: first a warm-up, then the measurement."""
    steps, ends, began = 0, time.monotonic() + warm, 0.0

    def count() -> bool:
        nonlocal steps
        steps += 1
        return time.monotonic() > ends

    await asyncio.gather(*(play(*player, count) for player in players))
    steps, began, cpu = 0, time.monotonic(), cpu_seconds()
    ends = began + seconds
    await asyncio.gather(*(play(*player, count) for player in players))
    took = time.monotonic() - began
    return {"steps": steps, "seconds": took, "cpu": cpu_seconds() - cpu}


def selenium(seconds: float, pages: int, browser: str, warm: float) -> dict[str, float]:
    """``pages``: number of browsers; upstream's environment variables name browser and driver."""
    import gymnasium
    import miniwob

    gymnasium.register_envs(miniwob)
    steps = [0] * pages
    begin, end = threading.Barrier(pages + 1), threading.Event()
    failed: list[str] = []

    def play(number: int) -> None:
        try:
            episodes(number)
        except Exception as error:
            failed.append(f"{type(error).__name__}: {error}")
            begin.abort()

    def episodes(number: int) -> None:
        task = list(TASKS)[number % len(TASKS)]
        tag = TASKS[task][0].upper()
        env = gymnasium.make(f"miniwob/{task}-v1", disable_env_checker=True).unwrapped
        try:
            env.set_record_screenshots(False)
            env.reset(seed=0)
            begin.wait()
            for seed in range(1_000_000):
                seen, _ = env.reset(seed=seed)
                refs = [d["ref"] for d in seen["dom_elements"] if d["tag"].upper() == tag]
                steps[number] += 1
                for click in range(CLICKS):
                    if end.is_set():
                        return
                    ref = int(refs[click % len(refs)])
                    env.step(env.create_action("CLICK_ELEMENT", ref=ref))
                    steps[number] += 1
        finally:
            env.close()

    threads = [threading.Thread(target=play, args=(n,), daemon=True) for n in range(pages)]
    for thread in threads:
        thread.start()
    with contextlib.suppress(threading.BrokenBarrierError):  # then one of them has failed
        begin.wait()
        time.sleep(warm)
    before, began, cpu = sum(steps), time.monotonic(), cpu_seconds()
    time.sleep(seconds)
    done, took, cpu = sum(steps) - before, time.monotonic() - began, cpu_seconds() - cpu
    end.set()
    for thread in threads:
        thread.join()
    if failed:
        raise RuntimeError(failed[0])
    return {"steps": done, "seconds": took, "cpu": cpu}


def cpu_seconds() -> float:
    """CPU seconds of this process and its descendants, browsers included; 0 without /proc."""
    parents: dict[int, list[int]] = {}
    used: dict[int, float] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has just ended
            fields = stat.read_text().rpartition(")")[2].split()
            pid = int(stat.parent.name)
            parents.setdefault(int(fields[1]), []).append(pid)
            used[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    total, waiting = 0.0, [os.getpid()]
    while waiting:
        pid = waiting.pop()
        total += used.get(pid, 0.0)
        waiting.extend(parents.get(pid, []))
    return total


# ---- measuring ----------------------------------------------------------------------------------


def environment(folder: Path, pip: list[str]) -> Path:
    """The Python of an environment with the peers, which is built if it does not exist."""
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        print(f"building the environment of the peers in {folder}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", *pip, *PINS]
        subprocess.run(install, check=True, stdout=sys.stderr)
    return python.absolute()


def peers(python: Path | None) -> tuple[dict[str, Any], dict[str, str]]:
    """The processes of the peers, and for each missing one the reason."""
    from benchmarks.support.timing import Runner

    own = [name for name in PEERS if name != "selenium"]
    found = {name: _runner(Runner, sys.executable, name) for name in own}
    if python is None:
        return found, {"selenium": "not measured: run with --peers"}
    chromium = shutil.which("/usr/lib/chromium/chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        reason = "no full Chromium with its chromedriver (Debian: apt-get install chromium-driver)"
        return found, {"selenium": reason}
    os.environ.update(
        MINIWOB_CHROME_BINARY=chromium,
        MINIWOB_CHROMEDRIVER=driver,
        SE_OFFLINE="true",
        SE_AVOID_STATS="true",
    )
    return {"selenium": _runner(Runner, str(python), "selenium"), **found}, {}


def _runner(kind: Any, python: str, name: str) -> Any:
    runner = kind(python, Path(__file__).absolute(), 120, own=name == "ours")
    runner._command += ["--serve", name]
    return runner


def measure(
    python: Path | None, pages: int, rounds: int, seconds: float, limit: float
) -> dict[str, Any]:
    """Measure all systems, with interleaved samples.

    Args:
        python: the Python of upstream's environment; ``None``: without it.
        pages: number of pages, for ours and Playwright.
        rounds: maximum number of rounds; no round is begun that would end after ``limit``.
        seconds: duration of a sample.
        limit: seconds for all rounds. The first round is always made.
    """
    from benchmarks.support.timing import NoResult, Runner, progress
    from swarm_ui.environments.web import INSTALL_HINT, find_browser

    binary = find_browser()
    if binary is None:
        raise SystemExit(INSTALL_HINT)
    runners, missing = peers(python)
    runners = {"ours": _runner(Runner, sys.executable, "ours"), **runners}
    rates: dict[str, list[float]] = {name: [] for name in runners}
    costs: dict[str, list[float]] = {name: [] for name in runners}
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
    with progress() as bar:
        task = bar.add_task("", total=rounds * len(runners))
        began = time.monotonic()
        for made in range(rounds):
            if made and (time.monotonic() - began) * (made + 1) / made > limit:
                break
            for name, runner in runners.items():
                bar.update(task, description=name, advance=1)
                if name in missing:
                    continue
                count = processors if name == "selenium" else pages
                request = {"seconds": seconds, "pages": count, "browser": str(binary), "warm": 1.0}
                try:
                    got = runner.ask(120, **request)
                except NoResult as reason:
                    if name == "ours":
                        raise SystemExit(f"ours: {reason}") from None
                    missing[name] = str(reason)
                    continue
                rates[name].append(got["steps"] / got["seconds"])
                costs[name].append(got["cpu"] / got["steps"] * 1000)
    for runner in runners.values():
        runner.stop()
    found = {name: median(values) if values else None for name, values in rates.items()}
    result = _result(found, missing, pages, processors, binary)
    cpu = {name: median(values) if values else None for name, values in costs.items()}
    return {**result, "rounds": len(rates["ours"]), "cpu_ms_per_step": cpu}


def _result(
    found: dict[str, float | None],
    missing: dict[str, str],
    pages: int,
    processors: int,
    binary: Path,
) -> dict[str, Any]:
    own = found["ours"]
    assert own is not None
    out: dict[str, Any] = {"steps_per_s": own}
    for name in PEERS:
        theirs = found.get(name)
        out[f"vs_{name}"] = None if theirs is None else own / theirs
        out[f"{name}_steps_per_s"] = theirs
    measured = {name: out[name] for name in TARGETS if out[name] is not None}
    missed = [name for name, value in measured.items() if value < TARGETS[name]]
    return out | {
        "tasks": len(TASKS),
        "pages": pages,
        "processors": processors,
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "browser": binary.name,
        "missing": missing,
        "missed": missed,
    }


def show(found: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("", "steps/s", "ours ÷ theirs", "CPU ms/step", "why not")
    cpu = {name: "" if ms is None else f"{ms:.2f}" for name, ms in found["cpu_ms_per_step"].items()}
    own = f"{found['steps_per_s']:.0f}"
    table.add_row(f"ours, {found['pages']} pages", own, "", cpu["ours"], "")
    for name in PEERS:
        rate, ratio = found[f"{name}_steps_per_s"], found[f"vs_{name}"]
        cells = ("", "") if rate is None else (f"{rate:.0f}", f"{ratio:.1f}")
        table.add_row(name, *cells, cpu.get(name, ""), found["missing"].get(name, ""))
    console = Console()
    console.print(table)
    for name in found["missed"]:
        console.print(f"missed: {name} {found[name]:.1f}, target {TARGETS[name]:g}")


def main() -> None:
    words = sys.argv[1:]
    place = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="within a minute, rougher figures")
    parser.add_argument("--peers", nargs="?", type=Path, const=Path(), metavar="FOLDER")
    parser.add_argument("--pages", type=int, default=8)
    parser.add_argument("--serve", choices=("ours", *PEERS), help="internal")
    args = parser.parse_args(words[:place])
    if args.serve:
        return serve(args.serve)
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for the package benchmarks
    python = None
    if args.peers is not None:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        named = args.peers != Path()
        folder = args.peers if named else Path(cache) / "swarm-ui" / "peers" / "miniwob"
        python = environment(folder, words[place + 1 :])
    rounds, seconds, limit = (2, 2.0, 40.0) if args.quick else (7, 6.0, 300.0)
    found = measure(python, args.pages, rounds, seconds, limit)
    show(found)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
