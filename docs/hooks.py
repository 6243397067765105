"""Gives the site the pages that stand at the root of the repository, and pictures their links."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

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
    up = "../" * page.file.src_uri.count("/")
    for name, place in _PAGES.items():
        link = rf"\]\((?:\.\./)*{re.escape(name)}(#[^)]*)?\)"
        markdown = re.sub(link, rf"]({up}{place}\1)", markdown)
    return _FILES.sub(r"\1", markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Link pictures to their files: in a narrow column, a drawing is read in its own window."""
    return _PICTURE.sub(r'<p><a href="\2">\1</a></p>', html)
