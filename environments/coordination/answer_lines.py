"""The answers of all agents as the text of one action: one line for each agent, ``NAME: ANSWER``.

Agents are not trusted: the text of an answer cannot add a line. Answers are ignored if two lines
have the same name, or if no agent has the name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

LONGEST = 40
"""Maximum number of characters of an agent's answer. No valid answer is longer."""


def written(answers: Mapping[str, str]) -> str:
    """One line for each agent, by its name. Answers that are too long are left out."""
    flat = {name: " ".join(text.replace(";", " ").split()) for name, text in answers.items()}
    return "\n".join(f"{name}: {text}" for name, text in flat.items() if len(text) <= LONGEST)


def read(text: str, names: Collection[str]) -> dict[str, str]:
    """The answers by name, in lower case. ``;`` may stand in place of a line break.

    Lines of other forms, of unknown names, and of names with several lines are left out.
    """
    known = {name.casefold(): name for name in names}
    found: dict[str, list[str]] = {}
    for line in text.replace(";", "\n").split("\n"):
        who, colon, answer = line.partition(":")
        name = known.get(who.strip().casefold())
        if colon and name is not None:
            found.setdefault(name, []).append(answer.strip().casefold())
    return {name: said[0] for name, said in found.items() if len(said) == 1}
