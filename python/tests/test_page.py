"""The code of docs/python.md, run from top to bottom."""

from __future__ import annotations

import pathlib
import re

import pytest


def test_the_page_runs_as_it_stands(tmp_path, monkeypatch, capsys):
    pytest.importorskip("polars")
    page = pathlib.Path(__file__).parents[2] / "docs" / "python.md"
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.finditer(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S):
        line = page.read_text()[: block.start()].count("\n") + 2
        # The lines of errors are those of the page.
        exec(compile("\n" * (line - 1) + block[1], str(page), "exec"), names)
    assert "signals in the journal" in capsys.readouterr().out
