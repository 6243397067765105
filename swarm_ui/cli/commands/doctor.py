"""``swarm-ui doctor``: what is installed, and how to install missing parts."""

from __future__ import annotations

from typing import Annotated

import msgspec
from rich.text import Text

from swarm_ui.cli import exits, flags
from swarm_ui.cli.checks import AREAS, checks
from swarm_ui.cli.output import Output, table
from swarm_ui.errors import ConfigError

_MARKS = {"ok": ("ok", "green"), "missing": ("MISSING", "bold red"), "absent": ("–", "dim")}


def doctor(
    url: flags.Url = None,
    model: Annotated[
        str | None, flags.declare("--model", "-m", value="NAME",
                                 help="model that --url should serve (default: any)",
                                 panel="")
    ] = None,
    key_env: Annotated[
        str, flags.declare(value="NAME", help="environment variable that holds the key", panel="")
    ] = "OPENAI_API_KEY",
    need: Annotated[
        list[str] | None,
        flags.declare(value="AREA", panel="", complete=flags.one_of(*AREAS),
                     help=f"exit with 1 if this is missing: {', '.join(AREAS)}; repeatable"),
    ] = None,
    json: flags.Json = False,
) -> int:  # fmt: skip
    """Report what is installed and reachable, and how to install what is missing.

    Keys are never shown. Example: [bold]swarm-ui doctor --need train --need web[/]
    """
    output = Output(machine=json)
    wrong = [area for area in need or () if area not in AREAS]
    if wrong:
        raise ConfigError(f"--need: no area '{wrong[0]}'; there are {', '.join(AREAS)}")
    found = checks(url, model, key_env, frozenset(need or ()))
    made = table("what swarm-ui finds here", ["", "", "found"], left=True)
    made.columns[0].no_wrap = made.columns[1].no_wrap = True
    for check in found:
        mark, style = _MARKS[check.state]
        text = Text(check.found)
        if check.do:
            text.append(("\n" if check.found else "") + f"→ {check.do}", style="yellow")
        made.add_row(check.name, Text(mark, style=style), text)
    output.show(made)
    missing = [check.name for check in found if check.state == "missing"]
    code = exits.NOT_GOOD if missing else exits.OK
    output.record({"ok": not missing, "exit": code, "missing": missing,
                   "checks": msgspec.to_builtins(found)})  # fmt: skip
    return code
