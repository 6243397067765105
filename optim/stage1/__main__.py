"""The old commands of stage 1; use ``swarm-ui export`` and ``swarm-ui finetune``.

python -m swarm_ui.optim.stage1 counts   CORPUS
python -m swarm_ui.optim.stage1 export   CORPUS FORMAT OUT
python -m swarm_ui.optim.stage1 finetune MODEL CORPUS OUT [--set max_length=8192 --set method=full]

They will be removed in the next version.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from swarm_ui.errors import ConfigError, SwarmError
from swarm_ui.optim.stage1 import FORMATS, FinetuneConfig, export, finetune, totals

_NEW = {
    "counts": "swarm-ui export CORPUS counts",
    "export": "swarm-ui export CORPUS FORMAT --out OUT",
    "finetune": "swarm-ui finetune MODEL CORPUS OUT",
}
_SETTINGS = ", ".join(FinetuneConfig.__struct_fields__)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options().parse_args(arguments)
    new = _NEW[options.command]
    print(f"warning: this command will be removed; use: {new}", file=sys.stderr)
    try:
        if options.command == "counts":
            written = msgspec.json.encode(totals(options.corpus))
            print(msgspec.json.format(written, indent=2).decode())
        elif options.command == "export":
            for path in export(options.corpus, options.format, options.out):
                print(path)
        else:
            config = _settings(options.set)
            results = finetune(options.model, options.corpus, options.out, config=config)
            if os.environ.get("RANK", "0") == "0":  # only one of several processes prints
                for result in results:
                    print(msgspec.json.encode(result).decode())
    except SwarmError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _settings(pairs: Sequence[str]) -> FinetuneConfig:
    given: dict[str, str] = {}
    for pair in pairs:
        name, equal, value = pair.partition("=")
        if not equal or name not in FinetuneConfig.__struct_fields__:
            raise ConfigError(f"--set {pair}: expected NAME=VALUE with one of {_SETTINGS}")
        given[name] = value
    try:
        return msgspec.convert(given, FinetuneConfig, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"--set: {error}") from error


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m swarm_ui.optim.stage1",
        description=(__doc__ or "").strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    counts = commands.add_parser("counts", help="count the samples and the dropped items")
    counts.add_argument("corpus", type=Path)
    out = commands.add_parser("export", help="write a corpus for another library")
    out.add_argument("corpus", type=Path)
    out.add_argument("format", choices=FORMATS)
    out.add_argument("out", type=Path)
    tune = commands.add_parser("finetune", help="train a model on a corpus")
    tune.add_argument("model", type=Path, help="folder of a causal transformer")
    tune.add_argument("corpus", type=Path)
    tune.add_argument("out", type=Path)
    tune.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                      help=f"one of {_SETTINGS}")  # fmt: skip
    return parser


if __name__ == "__main__":
    sys.exit(main())
