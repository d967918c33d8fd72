"""Words of the library become words of the command line."""

from __future__ import annotations

import pytest

from rdeepsense.cli.terminal import in_options, translated
from rdeepsense.errors import InputError, ModelFileError

OPTIONS = {"dtype": "--dtype", "rows": "--data", "fine_tune": "--fine-tune", "most": "--most"}


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("dtype='int8' is unknown", "--dtype int8 is unknown"),
        ("fine_tune=True is for dtype='int8'; float32", "--fine-tune is for --dtype int8; float32"),
        ("give rows=(X, y), or", "give --data, or"),
        ("take a wider dtype=", "take a wider --dtype"),
        ("dtype = 'int4' is unknown", "--dtype int4 is unknown"),
        ("by more than most=-0.5; nothing", "by more than --most -0.5; nothing"),
        ("dtype='two words' is", "--dtype 'two words' is"),
        ("mydtype=3 and dtype stay, as does tan=1", "mydtype=3 and dtype stay, as does tan=1"),
    ],
)
def test_translated(said: str, wanted: str) -> None:
    assert translated(said, OPTIONS) == wanted


def test_the_class_stays() -> None:
    with pytest.raises(ModelFileError, match="--dtype int8 is bad"), in_options(OPTIONS):
        raise ModelFileError("dtype='int8' is bad")
    with pytest.raises(ZeroDivisionError), in_options(OPTIONS):
        raise ZeroDivisionError
    with in_options(OPTIONS):
        assert issubclass(InputError, ValueError)
