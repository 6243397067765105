"""Tasks in the format of WebArena's configuration files, with its checks.

After https://github.com/web-arena-x/webarena, ``config_files/test.raw.json`` and
``evaluation_harness/evaluators.py``, without any of its code. The supported checks need neither a
language model nor a site's programming interface: ``string_match`` with ``exact_match`` and
``must_include``, ``url_match``, and ``program_html`` with a fixed URL and a locator in JavaScript.
Your own tasks can be written in the same format.
"""

from __future__ import annotations

import contextlib
import html
import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

import msgspec

from swarm_ui.environments.web.browser import ScriptError
from swarm_ui.environments.web.task import Visit, WebTask
from swarm_ui.errors import ConfigError

_PLACEHOLDER = re.compile(r"__([A-Z_]+?)__")
_MATCHES = frozenset({"exact_match", "must_include"})
# As upstream's tokenizer: 2.5, 1,200, -2 and 2-star are one word each.
_WORD = re.compile(r"-?\w+(?:(?:[./-]|[,:](?=\d))\w+)*|[^\w\s]")


class _Page(msgspec.Struct, frozen=True):
    """A part of ``program_html``."""

    url: str
    locator: str
    required_contents: dict[str, str | list[str]]
    prep_actions: list[str] = []
    """Scripts to run before the locator, such as one that opens a section."""


class _Eval(msgspec.Struct, frozen=True):
    eval_types: list[str]
    reference_answers: dict[str, str | list[str]] | None = None
    reference_url: str | None = ""
    program_html: list[_Page] = []


class _Entry(msgspec.Struct, frozen=True):
    task_id: int | str
    start_url: str
    intent: str
    eval: _Eval
    storage_state: str | None = None


class Suite(NamedTuple):
    """Tasks by name, and the reasons why other tasks are not supported."""

    tasks: Mapping[str, WebTask]
    unsupported: Mapping[str, str]


def webarena_tasks(path: Path, sites: Mapping[str, str] | None = None) -> Suite:
    """Read a configuration file of WebArena, or one of your own in its format.

    Args:
        path: a JSON list of tasks. A task's ``storage_state`` (cookies of a user who is logged in,
            as Playwright saves them) is searched for in the same folder.
        sites: the URL of each site, for placeholders such as ``__SHOPPING__``; default: the
            environment variables of the same names, as upstream does.

    Raises:
        ConfigError: the file cannot be read, or a site has no URL.
    """
    known = os.environ if sites is None else sites

    def filled(found: re.Match[str]) -> str:
        if not known.get(found[1]):
            raise ConfigError(f"{path}: no URL for the site {found[1]}: give it in 'sites'")
        return known[found[1]].rstrip("/")

    try:
        entries = msgspec.json.decode(path.read_bytes(), type=list[msgspec.Raw])
        parts = [msgspec.json.decode(entry, type=_Entry) for entry in entries]
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"{path} holds no tasks in WebArena's format: {error}") from error
    tasks, unsupported = {}, {}
    for entry in parts:
        name = str(entry.task_id)
        why = _unsupported(entry.eval)
        if why:
            unsupported[name] = why
            continue
        text = _PLACEHOLDER.sub(filled, msgspec.json.encode(entry).decode())
        task = msgspec.json.decode(text, type=_Entry)
        tasks[name] = WebTask(
            # Several pages may be open at the start, of which the last one is active.
            url=task.start_url.split(" |AND| ")[-1],
            goal=task.intent,
            reward=partial(_judged, task.eval),
            infeasible=_is_infeasible(task.eval),
            storage_state=_state(path, task.storage_state),
        )
    return Suite(tasks, unsupported)


def _state(path: Path, state: str | None) -> Path | None:
    if state is not None and not (path.parent / state).is_file():
        raise ConfigError(
            f"{path}: there is no {path.parent / state}; save it with upstream's browser_env."
            "auto_login, or set 'storage_state' to null"
        )
    return None if state is None else path.parent / state


def _is_infeasible(check: _Eval) -> bool:
    return (check.reference_answers or {}).get("fuzzy_match") == "N/A"


def _unsupported(check: _Eval) -> str:
    """Why a task cannot be judged here, or nothing."""
    strange = sorted(set(check.eval_types) - {"string_match", "url_match", "program_html"})
    if strange or not check.eval_types:
        return f"there is no check {strange}"
    if "fuzzy_match" in (check.reference_answers or {}) and not _is_infeasible(check):
        return "fuzzy_match needs a language model"
    compares = {
        "string_match": _compares(check.reference_answers or {}),
        "url_match": bool((check.reference_url or "").strip()),
        "program_html": any(_compares(page.required_contents) for page in check.program_html),
    }
    idle = [kind for kind in check.eval_types if not compares[kind]]
    if idle:
        return f"the check {idle[0]} compares nothing, so every episode would pass it"
    ways = set(check.reference_answers or {})
    ways = ways.union(*(page.required_contents for page in check.program_html))
    unknown = sorted(ways - _MATCHES - {"fuzzy_match"})
    if unknown:
        return f"there is no comparison {unknown}"
    for page in check.program_html:
        if "func:" in page.url or page.locator.startswith("func:"):
            return "its check calls a site's programming interface"
    return ""


def _compares(wanted: Mapping[str, str | list[str]]) -> bool:
    """Whether some text is wanted. Every text includes an empty one."""
    return any(how != "must_include" or any(phrases) for how, phrases in wanted.items())


async def _judged(check: _Eval, visit: Visit) -> bool:
    """The checks of a task; all must hold."""
    if "string_match" in check.eval_types:
        for how, wanted in (check.reference_answers or {}).items():
            if not _contains(how, wanted, visit.answer or "", tokens=True):
                return False
    if "url_match" in check.eval_types and not _same_url(check.reference_url or "", visit.url):
        return False
    for page in check.program_html if "program_html" in check.eval_types else ():
        if page.url != "last":
            await visit.open(page.url)
        shown = await _shown(visit, page)
        for how, wanted in page.required_contents.items():
            if not _contains(how, wanted, shown, tokens=False):
                return False
    return True


async def _shown(visit: Visit, page: _Page) -> str:
    """The text that the locator finds; empty if it finds none."""
    with contextlib.suppress(ScriptError):  # such as: the section is open already
        for script in page.prep_actions:
            await visit.evaluate(f"(() => {script})()")
    locator = page.locator.strip() or "document.documentElement.outerHTML"
    try:
        found = await visit.evaluate(f"(() => {locator})()")
    except ScriptError:  # the locator finds no element
        found = None
    return "" if found is None else html.unescape(str(found))


def _contains(how: str, wanted: str | list[str], said: str, *, tokens: bool) -> bool:
    """``exact_match`` or ``must_include``, ignoring case and quotes around the whole."""
    phrases = [wanted] if isinstance(wanted, str) else wanted
    text = _clean(said)
    if how == "exact_match":
        return all(_clean(phrase) == text for phrase in phrases)
    if tokens and len(phrases) == 1 and len(_clean(phrases[0])) == 1:
        # A single character must be a word, so that 0 is not found in 10 or 0.5.
        return _clean(phrases[0]) in _WORD.findall(text)
    either = [[phrase] if tokens else phrase.split(" |OR| ") for phrase in phrases]
    return all(any(_clean(one) in text for one in ones) for ones in either)


def _clean(text: str) -> str:
    text = text.strip()
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return (text[1:-1] if quoted else text).lower()


def _same_url(wanted: str, url: str) -> bool:
    """Whether ``url`` contains the host and path of a wanted URL, and a wanted value of each query
    parameter. ``wanted`` separates URLs by ``|OR|``."""
    choices = [urlsplit(one.rstrip("/")) for one in wanted.split(" |OR| ")]
    found = urlsplit(url.rstrip("/"))
    have = parse_qs(found.query)
    place = (found.netloc + found.path).rstrip("/")
    need: dict[str, set[str]] = {}
    for one in choices:
        for key, values in parse_qs(one.query).items():
            need.setdefault(key, set()).update(values)
    inside = any((one.netloc + one.path).rstrip("/") in place for one in choices)
    return inside and all(values & set(have.get(key, ())) for key, values in need.items())
