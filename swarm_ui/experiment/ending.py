"""How a script of a study ends: what goes wrong is one line and an exit code."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable

from swarm_ui.errors import SwarmError


def told(main: Callable[[], int]) -> Callable[[], int]:
    """``main`` with its errors told: exit code 2, and 130 where it was stopped by hand."""

    @functools.wraps(main)
    def run() -> int:
        try:
            return main()
        except SwarmError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            print("stopped; the same command goes on", file=sys.stderr)
            return 130

    return run
