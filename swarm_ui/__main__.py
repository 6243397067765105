"""The command ``swarm-ui``; also ``python -m swarm_ui``."""

from __future__ import annotations

import sys


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns the exit code, see :mod:`swarm_ui.cli.exits`."""
    try:
        from swarm_ui.cli.app import main as command
    except KeyboardInterrupt:  # Ctrl-C may come before anything has been loaded
        return 130

    return command(argv)


if __name__ == "__main__":
    sys.exit(main())
