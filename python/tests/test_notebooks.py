"""The notebooks run, and say what they say in the repository."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed: the notebooks")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: the notebooks")

NOTEBOOKS = sorted(Path(__file__).parent.with_name("notebooks").glob("*.ipynb"))


def texts(notebook: Any) -> list[str]:
    """Return all outputs but pictures; addresses of objects differ."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            text = output.get("text") or data.get("text/html") or data.get("text/plain") or ""
            found.append(re.sub(r"0x[0-9a-f]+", "0x", text))
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_says_the_same(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # UPDATE_EXPECT=1 writes the outputs anew.
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(path, as_version=4)
    expected = texts(notebook)
    (tmp_path / "work").mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path / "work"}})
        client.execute()
    if os.environ.get("UPDATE_EXPECT"):
        for cell in notebook.cells:
            cell.metadata = {}
        notebook.metadata.pop("language_info", None)
        nbformat.write(notebook, path)
        return
    assert texts(notebook) == expected, "UPDATE_EXPECT=1 writes the outputs anew; read the difference"
    assert path.stat().st_size < 200_000


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) == 4
