"""Times of another node are moved to the driver's clock, by all that is known of it."""

from __future__ import annotations

from array import array

from graphs import Drawing

from cgspec.alignment import Alignment
from cgspec.clocks import hull, settle
from cgspec.engines import ChannelTimes, PhaseData, TaskTimes
from cgspec.graph import Graph

NODES = {"near": "10.0.0.1", "far": "10.0.0.2"}
DRIVER = [(1000, 1200), (2000, 2100)]


def graph() -> Graph:
    drawing = Drawing().actor("near", "plain.py:Counter").actor("far", "plain.py:Counter").input("x")
    return drawing.task("hop", "near.inc", {"x": "inputs.x"}).task("land", "far.inc", {"x": "hop"}).graph("land")


def times(first: int, *spans: tuple[int, int], device: TaskTimes | None = None) -> TaskTimes:
    return TaskTimes(first, array("q", [s for s, _ in spans]), array("q", [e for _, e in spans]), device)


def settled(data: PhaseData, without: tuple[int, ...] = ()) -> tuple[TaskTimes, Alignment]:
    settle(graph(), data, NODES, DRIVER, without=without)
    return data.times[1], data.clocks["10.0.0.2"]


def test_the_offset_is_the_middle_of_what_questions_and_iterations_allow() -> None:
    near, far = times(0, (1010, 1050), (2010, 2020)), times(0, (60, 160), (1060, 1065))
    data = PhaseData((near, far), bounds={"10.0.0.2": (900, 1020)})
    # iteration 0 says 1000 - 60 <= o <= 1200 - 160, iteration 1 says 2000 - 1060 <= o <= 2100 - 1065
    moved, clock = settled(data)
    assert clock == Alignment(980, 40)  # 940 <= o <= 1020
    assert moved == times(0, (1040, 1140), (2040, 2045)) and data.times[0] is near


def test_skipped_and_failed_iterations_say_nothing_and_everything_moves() -> None:
    device = times(1, (0, 0), (40, 45))
    far = times(1, (0, 0), (50, 9000), device=device)  # of iterations 1 and 2, of which the driver saw no end
    data = PhaseData((times(0), far), bounds={"10.0.0.2": (-10, 20)})
    data.channels = [ChannelTimes(0, "read", 0, array("q", [7]), array("q", [8]))]
    data.channels.append(ChannelTimes(1, "write", 0, array("q", [7]), array("q", [8])))
    moved, clock = settled(data)
    assert clock == Alignment(5, 15)
    assert moved == times(1, (0, 0), (55, 9005), device=times(1, (0, 0), (45, 50)))
    assert [list(each.start) for each in data.channels] == [[7], [12]]


def test_an_iteration_that_raised_had_its_results_before_its_tasks_ended() -> None:
    data = PhaseData((times(0), times(0, (1001, 1900))), bounds={"10.0.0.2": (-10, 20)})
    assert settled(data, without=(0,))[1] == Alignment(5, 15)


def test_bounds_of_two_measurements_include_the_drift_between_them() -> None:
    assert hull({"a": (1, 5), "b": (0, 1)}, {"a": (3, 9)}) == {"a": (1, 9)}


def test_a_node_that_was_not_asked_is_moved_only_where_its_tasks_say_so() -> None:
    """The other node's clock is 5,000 ns ahead; each iteration takes 90 ns, 20 of them there, 60 to 80 ns after it."""
    near, far = times(0, (1010, 1030), (2010, 2030)), times(0, (6060, 6080), (7060, 7080))
    data = PhaseData((near, far))
    settle(graph(), data, NODES, [(1000, 1090), (2000, 2090)])
    # no start before its iteration was submitted, no end after it was done: 1000 - 6060 <= o <= 1090 - 6080
    assert data.clocks == {"10.0.0.2": Alignment(-5025, 35)}
    assert data.times == (near, times(0, (1035, 1055), (2035, 2055)))
