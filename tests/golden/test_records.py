"""The records in text files: each is compared line by line with the present behavior."""

from __future__ import annotations

import pytest
from golden.record import TEXTS
from golden.records import difference


@pytest.mark.parametrize("name", TEXTS)
def test_what_users_observe_is_as_recorded(name: str) -> None:
    changed = difference(name, TEXTS[name]())
    if changed:
        pytest.fail(
            f"{changed}\n\nThe {name} are not as recorded. If this is intended, record them anew "
            f"and commit the difference: python tests/golden/record.py {name}",
            pytrace=False,
        )
