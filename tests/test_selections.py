"""Which members of one family another reads, in a few characters."""

from __future__ import annotations

import pytest
from graphs_by_hand import at

from cgspec.views.selections import Pair, tell_axes, tell_selection


@pytest.mark.parametrize(
    ("pairs", "told"),
    [
        ([(at(pp=p), at(pp=p)) for p in range(3)], ""),
        ([(at(pp=p), at(pp=p + 1)) for p in range(3)], "pp-1"),
        ([(at(pp=p + 1), at(pp=p)) for p in range(3)], "pp+1"),
        ([(at(pp=3, mb=m), at(mb=m)) for m in range(2)], "pp=3"),
        ([(at(mb=m), ()) for m in range(4)], "mb=*"),
        ([(at(tp=(t + 1) % 4), at(tp=t)) for t in range(4)], "tp+1 mod 4"),
        ([(at(tp=(t - 1) % 4), at(tp=t)) for t in range(4)], "tp+3 mod 4"),
        ([(at(tp=s), at(tp=t)) for s in range(3) for t in range(3)], "tp varies"),
        ([(at(pp=0, tp=t), at(pp=1, tp=t)) for t in range(2)], "pp-1"),
        ([((), at(pp=p)) for p in range(3)], ""),
    ],
)
def test_selection(pairs: list[Pair], told: str) -> None:
    assert tell_selection(pairs) == told


def test_axes_are_told_with_their_sizes() -> None:
    assert tell_axes([at(pp=p, mb=m) for p in range(4) for m in range(8)]) == "[pp=4 \u00d7 mb=8]"
    assert tell_axes([()]) == ""
