"""Values are freed from shared memory whatever holds them, and what cannot be pickled is found before it is sent."""

from __future__ import annotations

import collections
import dataclasses
import pickle
import threading
from typing import Any

import numpy as np
import pytest
import torch

from cgspec.payloads import Sendable, detach, to_host

Pair = collections.namedtuple("Pair", "a b")


@dataclasses.dataclass
class Box:
    inside: Any


def view() -> np.ndarray:
    array = np.arange(4)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("wrap", "find"),
    [
        (lambda a: a, lambda v: v),
        (lambda a: [1, a], lambda v: v[1]),
        (lambda a: {"k": [a]}, lambda v: v["k"][0]),
        (lambda a: (a, "x"), lambda v: v[0]),
        (lambda a: Pair(1, a), lambda v: v.b),
        (lambda a: Box(Box(a)), lambda v: v.inside.inside),
    ],
)
def test_a_view_is_copied_wherever_it_is(wrap: Any, find: Any) -> None:
    array = view()
    value = detach(wrap(array))
    found = find(value)
    assert type(value) is type(wrap(array)) and found.flags.writeable and not np.shares_memory(found, array)
    assert list(found) == [0, 1, 2, 3]


def test_what_owns_its_memory_is_not_copied() -> None:
    array, tensor, text = np.arange(3), torch.arange(3), "x" * 100
    for value in (array, tensor, text, (1, 2), np.float64(1.0), np.float64):
        assert detach(value) is value


def test_plain_data_is_sent_without_trying() -> None:
    def never(value: object) -> None:
        raise AssertionError

    sendable = Sendable(never)
    for value in (1, "a", [1, (2.0, None)], {"t": torch.ones(2), "n": np.ones(2), "d": torch.float16}):
        assert sendable(value) is None


def test_an_unknown_type_is_tried_once_and_refused_with_the_reason() -> None:
    tried = []
    sendable = Sendable(lambda value: tried.append(value) or pickle.dumps(value))
    assert sendable(Box(1)) is None and sendable([Box(2)]) is None and len(tried) == 1
    reason = sendable({"lock": threading.Lock()})
    assert reason is not None and "cannot pickle '_thread.lock' object" in reason


def test_tensors_go_to_the_host_wherever_they_are() -> None:
    value = to_host([torch.ones(2), {"k": (torch.zeros(1), 3)}])
    assert value == [pytest.approx(torch.ones(2)), {"k": (torch.zeros(1), 3)}]
