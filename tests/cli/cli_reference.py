"""The options of every command, written into docs/cli.md: ``python tests/cli/cli_reference.py``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer.main

from swarm_ui.cli.app import app
from swarm_ui.cli.exits import MEANINGS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"


def commands() -> dict[str, Any]:
    """Every command by name (``"models pull"`` in a group), as typer made it."""
    found: dict[str, Any] = {}
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        if inner is None:
            found[name] = command
        else:
            found |= {f"{name} {part}": each for part, each in inner.items()}
    return found


def options(command: Any) -> str:
    """A list of the command's arguments and options."""
    lines = []
    for parameter in command.params:
        if parameter.name == "help" or getattr(parameter, "hidden", False):
            continue
        if parameter.param_type_name == "argument":
            shown = f"`{parameter.metavar or parameter.name.upper()}`"
        else:
            shown = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
        lines.append(f"- {shown}: {parameter.help}")
    return "\n".join(lines) + "\n"


def exit_codes() -> str:
    """A table of the exit codes."""
    rows = [f"| {code} | {meaning} |" for code, meaning in MEANINGS.items()]
    return "\n".join(["| code | meaning |", "| --- | --- |", *rows]) + "\n"


def filled(page: str) -> str:
    """The page with its generated parts made anew."""
    parts = {f"options {name}": options(command) for name, command in commands().items()}
    parts["exit codes"] = exit_codes()
    for name, text in parts.items():
        page = _put(page, f"<!-- {name} -->", text)
    return page


def _put(page: str, begin: str, text: str) -> str:
    """The page with ``text`` between a mark and the next end."""
    end = "<!-- end -->"
    pattern = re.escape(begin) + r"\n.*?" + re.escape(end)
    return re.sub(pattern, lambda _: f"{begin}\n\n{text}\n{end}", page, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
