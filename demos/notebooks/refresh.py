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
            if "image/svg+xml" in output.get("data", {}):  # the HTML would be a second copy
                output.data.pop("text/html", None)
            if "metadata" in output:  # only the sizes of pictures are kept
                sizes = {k: v for k, v in output.metadata.items() if k.startswith("image/")}
                output.metadata = nbformat.from_dict(sizes)
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
