"""Run the notebooks from top to bottom and write them back with their outputs.

python demos/notebooks/refresh.py                       # all of them, about five minutes
python demos/notebooks/refresh.py 1_compose_a_graph     # some
"""

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
    """A copy of the notebook after all its cells ran in a fresh kernel, which works in ``folder``.

    ``timeout``: seconds for one cell. Raises ``CellExecutionError`` if a cell raises.
    """
    copy, where = nbformat.from_dict(notebook), {"metadata": {"path": str(folder)}}
    NotebookClient(copy, timeout=timeout, kernel_name="python3", resources=where).execute()
    return cleaned(copy)


def cleaned(notebook: NotebookNode) -> NotebookNode:
    """Without what differs from run to run or machine to machine and says nothing."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({})
        kept: list[NotebookNode] = []
        for output in cell.get("outputs", ()):
            last = kept[-1] if kept else {}
            if last.get("name") and last.get("name") == output.get("name"):
                last.text += output.text  # kernels split streams at random places
                continue
            kept.append(output)
            data = output.get("data", {})
            if "image/svg+xml" in data:  # every viewer shows it: the HTML would be a second copy
                data.pop("text/html", None)
                text = data.get("text/plain", "")
                if len(text) > LONGEST_TEXT + 4:
                    data["text/plain"] = text[:LONGEST_TEXT] + " ..."
            if "metadata" in output:
                sizes = {
                    kind: {name: said[name] for name in ("width", "height") if name in said}
                    for kind, said in output.metadata.items() if kind.startswith("image/")
                }  # fmt: skip
                output.metadata = nbformat.from_dict({k: size for k, size in sizes.items() if size})
        if cell.cell_type == "code":
            cell.outputs = kept
    return notebook


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(path.stem for path in FOLDER.glob("*.ipynb")):
        path = FOLDER / f"{Path(name).stem}.ipynb"
        with tempfile.TemporaryDirectory() as folder:
            notebook = executed(nbformat.read(path, as_version=4), Path(folder))
        nbformat.write(notebook, path)
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")
