"""What the blocks of the how-to on graphs of language models print is what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[3] / "docs/howto/llm_graphs.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(python|text)\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
PROGRAMS = [
    (code, BLOCKS[k + 1][1] if k + 1 < len(BLOCKS) and BLOCKS[k + 1][0] == "text" else "")
    for k, (language, code) in enumerate(BLOCKS)
    if language == "python"
]


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


@pytest.mark.parametrize(("code", "shown"), PROGRAMS)
def test_a_block_prints_what_is_shown(
    code: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(compile(code, "a block", "exec", dont_inherit=True), {"__name__": "__main__"})
    printed = lines(capsys.readouterr().out)
    for said in re.findall(r"^ *print\(.*\)  # (.*)$", code, flags=re.MULTILINE):
        assert said in printed
    if "await" not in shown:  # the block of the MCP server prints nothing
        assert "\n".join(lines(shown)) in "\n".join(printed)
