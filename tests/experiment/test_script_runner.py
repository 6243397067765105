"""Scripts: what they print and return when something is wrong."""

from __future__ import annotations

import subprocess
import sys

import pytest

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.script_runner import script


def test_an_error_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    @script
    def main() -> int:
        raise ConfigError("no such folder")

    assert main() == 2
    assert capsys.readouterr().err == "error: no such folder\n"


def test_a_stopped_script_says_how_to_continue(capsys: pytest.CaptureFixture[str]) -> None:
    @script
    def main() -> int:
        raise KeyboardInterrupt

    assert main() == 130
    assert "the same command continues" in capsys.readouterr().err


def test_output_that_nobody_reads_is_no_error() -> None:
    text = (
        "import sys\n"
        "from swarm_ui.experiment.script_runner import script\n"
        "@script\n"
        "def main():\n"
        "    for _ in range(20_000):\n"
        "        print('a line')\n"
        "    return 0\n"
        "sys.exit(main())\n"
    )
    command = [sys.executable, "-c", text]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b"a line\n"
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", 0)
