"""Run as a program: opens pages, says who its processes are, and waits to be killed."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from swarm_ui.environments.miniwob import MiniWobBrowser


def family(pid: int) -> list[int]:
    """A process and all below it (Linux)."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, waiting = [], [pid]
    while waiting:
        found.append(waiting.pop())
        waiting.extend(parents.get(found[-1], []))
    return found


async def main(hang: bool) -> None:
    async with MiniWobBrowser(pages=2) as browser:
        one, two = browser.environments
        await one.reset(task="click-test", seed=1)
        await two.reset(task="enter-text", seed=1)
        assert one.page is not None
        if hang:  # a page that no longer listens
            task = asyncio.ensure_future(one.page.page.evaluate("for (;;);"))
            await asyncio.sleep(0.3)
            assert not task.done()
        print(json.dumps(family(os.getpid())), flush=True)
        await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(main("hang" in sys.argv))
