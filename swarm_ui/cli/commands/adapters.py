"""``swarm-ui models``: LoRA adapters as folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from swarm_ui.adapter_metadata import METADATA_FILE, AdapterMetadata
from swarm_ui.cli import flags
from swarm_ui.cli.commands.models import models
from swarm_ui.cli.output import Output, table
from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.experiment.config import ModelSection
from swarm_ui.experiment.models import IN_PROCESS, SINGLE, kind_of, load_in_process
from swarm_ui.experiment.teams import agent_names
from swarm_ui.nodes.models.pretrained.catalogue import SHIPPED_ADAPTERS, adapter_folder
from swarm_ui.nodes.models.tiny_agent.shipped_agents import SHIPPED_AGENTS
from swarm_ui.prompts import FORMATS, format_named

commands = models
"""The commands about models, with those of this module."""
_Adapter = Annotated[
    Path, typer.Argument(metavar="ADAPTER", help="folder of one adapter, in peft's format; or the "
                         "name of one in this package")
]  # fmt: skip
_Out = Annotated[Path, typer.Argument(metavar="OUT", help="folder to write")]


@commands.command("adapters")
def list_adapters(
    folder: Annotated[Path | None, typer.Argument(metavar="FOLDER", help="a run of train, its "
                      "folder 'adapters', or the folder of one adapter; default: the adapters in "
                      "this package")] = None,
    json: flags.Json = False,
) -> int:  # fmt: skip
    """List the adapters in a folder: version, size, and what they were trained with.

    Example: [bold]swarm-ui models adapters runs/trained[/]
    """
    output, files = Output(machine=json), _files()
    if folder is None:
        found = [replace(files.one_adapter(each.folder), name=name)
                 for name, each in SHIPPED_ADAPTERS.items()]  # fmt: skip
    else:
        found = files.adapters_in(adapter_folder(folder))
    title = "in this package" if folder is None else str(found[0].folder.parent)
    made = table(title, ["adapter", "version", "rank", "alpha", "parameters",
                 "MB", "format", "base model"], left=True)  # fmt: skip
    rows: list[dict[str, object]] = []
    for facts in found:
        about = facts.metadata
        version = "–" if facts.version is None else str(facts.version)
        base = f"{about.base_model} {about.base_fingerprint[:12]}".strip() or "not known"
        made.add_row(facts.name, version, str(facts.rank), f"{facts.alpha:g}",
                     f"{facts.parameters:,}", f"{facts.size / 1e6:.1f}",
                     about.prompt_format or "–", base)  # fmt: skip
        rows.append({"name": facts.name, "folder": str(facts.folder), "version": facts.version,
                     "rank": facts.rank, "alpha": facts.alpha, "parameters": facts.parameters,
                     "bytes": facts.size, **msgspec.structs.asdict(about)})  # fmt: skip
    output.show(made)
    return output.done(adapters=rows)


@commands.command("import")
def import_adapters(
    adapter: _Adapter,
    out: _Out,
    agents: Annotated[int, typer.Option("--agents", "-a", metavar="N", min=1, max=64,
                                        help="number of agents, with a copy for each")] = 4,
    prompt_format: Annotated[str, typer.Option(metavar="NAME", help="format it was trained with "
                             "(default: as its folder records)",
                             autocompletion=flags.one_of(*FORMATS))] = "",
    base: Annotated[str, typer.Option(metavar="MODEL", help="model it was trained on, if its "
                                      "folder does not record it: smollm2, or a folder")] = "",
    any_base: Annotated[bool, typer.Option("--any-base", metavar="", help="leave out the "
                        "fingerprint of the base weights, so that the copies load on other "
                        "weights, too")] = False,
    force: flags.Force = False,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> int:  # fmt: skip
    """Copy one adapter once for each agent of a new team.

    Give the new folder to --adapters of eval or train.
    Example: [bold]swarm-ui models import final start --agents 4[/]
    """
    output = Output(machine=json, quiet=quiet)
    _expect_replaceable(out, force)
    files = _files()
    if base and any_base:
        raise ConfigError(
            "--base records the model that the adapter was trained on, and --any-base removes this "
            "record; give only one of them"
        )
    if prompt_format:
        format_named(prompt_format)
    named = (base, _model_place(base)) if base else None
    adapter = adapter_folder(adapter)
    about = files.described(files.one_adapter(adapter), prompt_format=prompt_format, base=named)
    if any_base:
        about = msgspec.structs.replace(about, base_fingerprint="")
    names = agent_names(agents)
    files.import_adapter(adapter, out, names, about)
    output.say(f"wrote {out}: {', '.join(names)}{_trained_with(about)}")
    output.command("next", "swarm-ui", "train", "phone", "--agents", str(agents), "--adapters",
                   str(out), *_model_option(about.base_model))  # fmt: skip
    return output.done(folder=str(out), adapters=list(names), **msgspec.structs.asdict(about))


@commands.command("merge")
def merge_adapter(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="base, general, smollm2, a folder, "
                                         "or org/name on the Hugging Face Hub")],
    adapter: _Adapter,
    out: _Out,
    force: flags.Force = False,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> int:  # fmt: skip
    """Write a model with an adapter added to its weights, for --model.

    The adapter's prompt format becomes that of the new model.
    Example: [bold]swarm-ui models merge smollm2 final merged[/]
    """
    output = Output(machine=json, quiet=quiet)
    _expect_replaceable(out, force)
    facts = _files().one_adapter(adapter_folder(adapter))
    section = ModelSection(name=model, adapters=str(facts.folder))
    if kind_of(section) not in IN_PROCESS:
        raise ConfigError(
            f"'{model}' is not a model that runs in this process; name a folder, or base"
        )
    with output.busy(f"loading {model} …"):
        loaded = load_in_process(section)
    from swarm_ui.nodes.models.transformers.adapters.folders import save_merged

    save_merged(loaded, SINGLE, out)
    output.say(f"wrote {out}")
    output.command("next", "swarm-ui", "eval", "phone", "contacts-add", "--model", str(out))
    return output.done(folder=str(out), prompt_format=facts.metadata.prompt_format)


@commands.command("export")
def export_one(
    adapter: _Adapter,
    out: _Out,
    force: flags.Force = False,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> int:
    """Write a copy of one adapter to share, in bfloat16 and without paths of this machine.

    Example: [bold]swarm-ui models export base-agent/final my-adapter[/]
    """
    output = Output(machine=json, quiet=quiet)
    _expect_replaceable(out, force)
    files, folder = _files(), adapter_folder(adapter)
    files.export_adapter(folder, out, files.one_adapter(folder).metadata)
    facts = files.one_adapter(out)
    output.say(f"wrote {out}: {facts.parameters:,} weights, {facts.size / 1e6:.1f} MB"
               f"{_trained_with(facts.metadata)}")  # fmt: skip
    return output.done(folder=str(out), bytes=facts.size, parameters=facts.parameters)


def _files() -> Any:
    """The functions that read adapters, which need the extra."""
    try:
        from swarm_ui.nodes.models.transformers.adapters import folders
    except ImportError as error:
        raise MissingExtra("train", "reading adapters", error.name or "peft") from error
    return folders


def _model_place(name: str) -> Path:
    from swarm_ui.nodes import model_folder

    return SHIPPED_AGENTS.get(name) or model_folder(name)


def _expect_replaceable(out: Path, force: bool) -> None:
    """Raise ``ConfigError`` if a folder exists and must not be replaced.

    A folder that these commands did not write is never deleted.
    """
    flags.expect_new(out, force)
    ours: Sequence[str] = (METADATA_FILE, "versions.json")
    empty = out.is_dir() and not any(out.iterdir())
    if out.exists() and not empty and not any((out / name).is_file() for name in ours):
        raise ConfigError(
            f"'{out}' holds other files; --force replaces only what 'swarm-ui models' wrote"
        )


def _trained_with(about: AdapterMetadata) -> str:
    known = [f"prompt format {about.prompt_format}" if about.prompt_format else "",
             f"base model {about.base_model}" if about.base_model else ""]  # fmt: skip
    found = [text for text in known if text]
    return f" ({', '.join(found)})" if found else ""


def _model_option(base: str) -> list[str]:
    if base in ("", "base-agent"):
        return []
    return ["--model", "general" if base == "general-agent" else base]
