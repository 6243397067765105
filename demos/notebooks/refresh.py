"""Run the notebooks from top to bottom and write them back with their outputs.

python demos/notebooks/refresh.py                       # all of them, about five minutes
python demos/notebooks/refresh.py 1_compose_a_graph     # some
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

FOLDER = Path(__file__).resolve().parent
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}

LONGEST_TEXT = 120
"""Characters of the text that stands beside a picture."""


def executed(notebook: NotebookNode, folder: Path, *, timeout: int = 600) -> NotebookNode:
    """A copy of the notebook after all its cells ran in a fresh kernel.

    Args:
        folder: where the kernel works.
        timeout: seconds for one cell.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell raised; the message has its traceback.
    """
    copy = nbformat.from_dict(notebook)
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(copy, timeout=timeout, kernel_name="python3", resources=resources)
    client.execute()
    return cleaned(copy)


def cleaned(notebook: NotebookNode) -> NotebookNode:
    """Without what differs from run to run or machine to machine and says nothing."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({})
        if cell.cell_type == "code":
            cell.outputs = [_output(output) for output in _joined(cell.outputs)]
    return notebook


def _joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Join neighbouring pieces of one stream, because kernels split streams at random places."""
    found: list[NotebookNode] = []
    for output in outputs:
        last = found[-1] if found else None
        if last is not None and output.output_type == "stream" and last.get("name") == output.name:
            last.text += output.text
        else:
            found.append(output)
    return found


def _output(output: NotebookNode) -> NotebookNode:
    """A picture is kept once: as SVG, which every viewer shows, not as HTML and as text too."""
    data = output.get("data", {})
    if "image/svg+xml" in data:
        data.pop("text/html", None)
        if len(data.get("text/plain", "")) > LONGEST_TEXT:
            data["text/plain"] = data["text/plain"][:LONGEST_TEXT] + " ..."
    if "metadata" in output:
        sizes = {
            kind: {name: said[name] for name in ("width", "height") if name in said}
            for kind, said in output.metadata.items()
            if kind.startswith("image/")
        }
        output.metadata = nbformat.from_dict({kind: size for kind, size in sizes.items() if size})
    return output


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="of notebooks; default: all")
    names = parser.parse_args().names or sorted(path.stem for path in FOLDER.glob("*.ipynb"))
    for name in names:
        path = FOLDER / f"{Path(name).stem}.ipynb"
        with tempfile.TemporaryDirectory() as folder:
            notebook = executed(nbformat.read(path, as_version=4), Path(folder))
        nbformat.write(notebook, path)
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
