"""What a comparison found, as values that go to JSON and back: nothing is measured, printed or drawn here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

OURS = "bbrewrite"


@dataclass(frozen=True)
class Times:
    """A contender's median time of each round, in seconds; `fault` says why it has none that count."""

    name: str
    rounds: tuple[float, ...]
    error: float = 0.0
    fault: str = ""

    @property
    def seconds(self) -> float:
        """The median over rounds."""
        return median(self.rounds)


@dataclass(frozen=True)
class Row:
    """The times of one workload, which takes `work` operations or bytes.

    `limits` are the work a second that the machine could do in each round, `limit_name` says of what kind.
    `chosen_from` are the times of an earlier run, by which the library to compare with was chosen; without it the
    fastest of the same run counts.
    """

    kind: str
    shape: tuple[int, ...]
    element: str
    work: int
    unit: str  # GFLOP/s or GB/s
    limit_name: str
    limits: tuple[float, ...]
    contenders: tuple[Times, ...]
    chosen_from: tuple[Times, ...] = field(default=())

    @property
    def label(self) -> str:
        return f"{self.kind} {'x'.join(map(str, self.shape))} {self.element}"

    @property
    def ours(self) -> Times:
        return next(each for each in self.contenders if each.name == OURS)

    @property
    def best_peer(self) -> Times | None:
        """The library that counts."""
        chosen = fastest(self.chosen_from)
        if chosen is not None:
            return next((each for each in self.contenders if each.name == chosen.name and not each.fault), None)
        return fastest(self.contenders)

    @property
    def ratio(self) -> float | None:
        """The best library's time over ours."""
        peer = self.best_peer
        return None if peer is None or self.ours.fault else peer.seconds / self.ours.seconds

    @property
    def fraction(self) -> float:
        """The share of the machine's limit that ours reaches: in each round of what it was then, since it swings."""
        if self.ours.fault:
            return 0.0
        rounds = zip(self.ours.rounds, self.limits, strict=True)
        return median(self.work / seconds / limit for seconds, limit in rounds)

    @property
    def limit(self) -> float:
        """The median over rounds of what the machine could do."""
        return median(self.limits)


def fastest(contenders: Sequence[Times]) -> Times | None:
    """The fastest of the libraries with a right result."""
    peers = [each for each in contenders if each.name != OURS and not each.fault]
    return min(peers, key=lambda peer: peer.seconds, default=None)


@dataclass(frozen=True)
class Results:
    """The rows of one run, and what it ran on: the processor, threads, rounds, and the versions of the libraries."""

    processor: str
    threads: int
    rounds: int
    versions: dict[str, str]
    rows: tuple[Row, ...] = ()

    def with_row(self, row: Row) -> Results:
        return replace(self, rows=(*self.rows, row))

    def write(self, path: Path) -> None:
        """Writes JSON, a line for each row."""
        head = {name: value for name, value in asdict(self).items() if name != "rows"}
        rows = ",\n".join(json.dumps(_shortened(asdict(row))) for row in self.rows)
        path.write_text(f'{json.dumps(head)[:-1]}, "rows": [\n{rows}\n]}}\n', encoding="utf-8")


def read_results(path: Path) -> Results:
    """What `write` wrote."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return Results(**{**found, "rows": tuple(map(_row, found["rows"]))})


def _row(found: dict[str, Any]) -> Row:
    times = {
        name: tuple(Times(**{**each, "rounds": tuple(each["rounds"])}) for each in found[name])
        for name in ("contenders", "chosen_from")
    }
    return Row(**{**found, **times, "shape": tuple(found["shape"]), "limits": tuple(found["limits"])})


def _shortened(value: Any) -> Any:
    """The value with floats of four digits, which is more than times have."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {name: _shortened(inner) for name, inner in value.items()}
    return [_shortened(inner) for inner in value] if isinstance(value, list | tuple) else value
