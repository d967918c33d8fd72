"""How a model did beside simple ones on rows that no choice had seen, as its file keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rdeepsense.errors import InputError
from rdeepsense.modelfile.schema import (
    Json,
    Kind,
    check_fields,
    maybe,
    number,
    several,
    text,
    whole,
)

LARGEST = 1e300
_OBJECT = Kind(lambda value: type(value) is dict, "an object")
_FIGURE = maybe(number(-LARGEST, LARGEST))
_PEERS = {"rows": whole(1, 1 << 53), "records": several(_OBJECT, 10_000, least=1)}
_RECORD = {
    "target": text(9_999),
    "method": text(9_999),
    "figures": _OBJECT,
    "behind": _FIGURE,
    "behind_error": _FIGURE,
}


@dataclass(frozen=True)
class PeerRecord:
    """One method's figures of one target; `behind` is its NLL less the model's, row by row."""

    target: str
    method: str
    figures: Mapping[str, float | None]
    behind: float | None
    behind_error: float | None


@dataclass(frozen=True)
class Peers:
    """The figures of the model and of simple ones on the same rows."""

    rows: int
    records: tuple[PeerRecord, ...]

    def to_json(self) -> dict[str, Any]:  # Any: whatever JSON holds
        """Return plain data."""
        return {"rows": self.rows, "records": [asdict(one) for one in self.records]}

    @classmethod
    def from_json(cls, value: Json) -> Peers:
        """Read what `check_peers` has passed."""
        return cls(value["rows"], tuple(PeerRecord(**one) for one in value["records"]))


def check_peers(value: Json) -> None:
    """Refuse a record of which a field is missing, unknown, of another kind or out of range."""
    check_fields(value, _PEERS, at="peers.")
    for place, one in enumerate(value["records"]):
        at = f"peers.records[{place}]."
        check_fields(one, _RECORD, at=at)
        check_fields(one["figures"], dict.fromkeys(one["figures"], _FIGURE), at=f"{at}figures.")
        if strange := sorted(set(one) - set(_RECORD)):
            raise InputError(f"{at}{strange[0]!s:.60} is unknown here")
