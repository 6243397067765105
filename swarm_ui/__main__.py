"""The command ``swarm-ui``; also ``python -m swarm_ui``."""

from __future__ import annotations

import os
import sys

_USAGE = """usage: swarm-ui COMMAND ...

  play ENV [TASK]   do a task by hand; without a task, list them (swarm-ui play --help)
"""


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns the exit code: 0 done, 2 wrong usage, 130 interrupted."""
    words = sys.argv[1:] if argv is None else argv
    if words and words[0] == "play":
        from swarm_ui.environments.play.__main__ import main as play

        try:
            return play(words[1:])
        except BrokenPipeError:  # whoever read the output, such as head, has enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
    asked = not words or words[0] in ("-h", "--help")
    print(_USAGE if asked else f"swarm-ui: no command '{words[0]}'\n{_USAGE}", end="",
          file=sys.stdout if asked else sys.stderr)  # fmt: skip
    return 0 if asked else 2


if __name__ == "__main__":
    sys.exit(main())
