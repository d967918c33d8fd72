"""The digest of the code: what changes it, and that what is left out is there."""

from __future__ import annotations

from pathlib import Path

import pytest

import rdeepsense
from rdeepsense.paper.cells import code_digest
from rdeepsense.paper.run import IRRELEVANT_CODE as OF_STUDIES
from rdeepsense.paper.uci import IRRELEVANT_CODE as OF_BENCHMARKS


def test_it_changes_with_the_code_that_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cli").mkdir()
    for name in ("__init__.py", "one.py", "cli/fit.py"):
        (tmp_path / name).write_text("x = 1\n")
    monkeypatch.setattr(rdeepsense, "__file__", str(tmp_path / "__init__.py"))

    def digests() -> list[str]:
        return [code_digest.__wrapped__(left) for left in ((), ("cli",), ("one.py", "cli"))]

    before = digests()
    assert len(set(before)) == 3
    (tmp_path / "cli" / "fit.py").write_text("x = 2\n")
    assert [a == b for a, b in zip(before, digests(), strict=True)] == [False, True, True]
    (tmp_path / "one.py").write_text("x = 2\n")
    assert [a == b for a, b in zip(before, digests(), strict=True)] == [False, False, True]


@pytest.mark.parametrize("name", [*OF_BENCHMARKS, *OF_STUDIES])
def test_code_that_is_left_out_exists(name: str) -> None:
    assert (Path(rdeepsense.__file__).parent / name).exists()
