"""Gives the site the pages that stand at the root of the repository, and pictures their links."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer.main
from mkdocs.structure.files import File, Files

from swarm_ui.cli.app import app
from swarm_ui.cli.exits import MEANINGS

_ROOT = Path(__file__).resolve().parent.parent
_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
_FILES = re.compile(r"\[([^\]]+)\]\((?:\.\./)*(LICENSE|demos/[\w./]+)\)")
_PICTURE = re.compile(r'<p>(<img [^>]*src="([^":]+)"[^>]*>)</p>')


def on_files(files: Files, config: Any) -> Files:
    """Add them; their links into ``docs/`` lose the folder."""
    for name, page in _PAGES.items():
        text = (_ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Point links to them at their pages; a file that is no page is only named."""
    if page.file.src_uri == "cli.md":
        markdown = with_options(markdown)
    up = "../" * page.file.src_uri.count("/")
    for name, place in _PAGES.items():
        link = rf"\]\((?:\.\./)*{re.escape(name)}(#[^)]*)?\)"
        markdown = re.sub(link, rf"]({up}{place}\1)", markdown)
    return _FILES.sub(r"\1", markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Link pictures to their files: in a narrow column, a drawing is read in its own window."""
    return _PICTURE.sub(r'<p><a href="\2">\1</a></p>', html)


def commands() -> dict[str, Any]:
    """Every command by name, as typer made it."""
    return dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def with_options(page: str) -> str:
    """The page of the command line with its generated lists in place of their marks."""
    for name, command in commands().items():
        inner = getattr(command, "commands", {"": command})
        lists = [_heading(part) + _options(each) for part, each in inner.items()]
        page = page.replace(f"<!-- options {name} -->", "\n".join(lists))
    rows = [f"| {code} | {meaning} |" for code, meaning in MEANINGS.items()]
    table = "\n".join(["| exit code | meaning |", "| --- | --- |", *rows])
    return page.replace("<!-- exit codes -->", table)


def _heading(part: str) -> str:
    return f"`{part}`:\n\n" if part else ""


def _options(command: Any) -> str:
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
