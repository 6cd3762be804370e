"""Reads and writes of channels, from an engine that timed them to what people see; see also test_profilers."""

from __future__ import annotations

import gzip
import json
from array import array

import pytest
from jobs import actor, graph, job, task

from cgspec.engines import ENGINES, ChannelTimes, PhaseData
from cgspec.engines.local import LocalEngine
from cgspec.graph import InputRef, TaskRef
from cgspec.record import Times
from cgspec.running import Result, run
from cgspec.timeline import read_phase
from cgspec.views.report import report
from cgspec.views.summary import text
from cgspec.views.trace import merge

US = 1000


class Timed(LocalEngine):
    """``send`` writes twice in each iteration, for 3 and 4 µs; ``take`` reads for 10 µs, from the second one on."""

    def end(self) -> PhaseData:
        data = super().end()
        if self.phase.profile is not None:
            count, begun = len(data.times[0].start), data.times[0].end[0]
            ones = range(count)
            for us in (3, 4):
                start = array("q", [begun + 50 * US * i for i in ones])
                data.channels.append(ChannelTimes(0, "write", 0, start, array("q", [at + us * US for at in start])))
            start = array("q", [0, *(begun + 50 * US * i for i in ones[1:])])
            end = array("q", [at and at + 10 * US for at in start])
            data.channels.append(ChannelTimes(1, "read", 0, start, end))
        return data


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    actors = [actor("one", (0,)), actor("two", (1,))]
    tasks = [task("send", 0, "echo", {"x": InputRef(0)}), task("take", 1, "echo", {"x": TaskRef(0)})]
    made = graph({"x": 1}, actors, tasks, [("take", TaskRef(1))])
    folder = tmp_path_factory.mktemp("channels")
    patch = pytest.MonkeyPatch()
    patch.setitem(ENGINES, "compiled", lambda graph, options: Timed(graph, options))
    sections = {"engine": "compiled", "run": {"iterations": 5, "warmup": 0}}
    sections["profile"] = {"kind": "timeline", "iterations": 3, "warmup": 1}
    found = run(job(made, folder, **sections))
    patch.undo()
    return found


def test_the_record_says_what_a_task_reads_and_writes_in_an_iteration(result: Result) -> None:
    assert result.record.status == "passed"
    send, take = result.record.tasks["send"], result.record.tasks["take"]

    def told(times: Times | None) -> tuple[int, float, float] | None:
        return times and (times.count, times.min, times.max)

    assert (told(send.read_us), told(send.write_us)) == (None, (4, 7.0, 7.0))
    assert (told(take.read_us), told(take.write_us)) == ((3, 10.0, 10.0), None)
    assert send.busy_us is not None and send.busy_us.count == 5  # of the measure phase, as always


def test_every_read_and_write_is_in_a_file_and_in_the_merged_trace(result: Result) -> None:
    lines = (result.run_dir / "channels.csv").read_text().splitlines()
    assert lines[0] == "phase,iteration,task,operation,start_ns,end_ns"
    assert [line.split(",")[:4] for line in lines[1:5]] == [
        ["profile-timeline", str(i), "send", "write"] for i in range(4)
    ]
    assert [line.split(",")[1:4] for line in lines[9:]] == [[str(i), "take", "read"] for i in range(1, 4)]
    segment = read_phase(result.run_dir, "profile-timeline")
    assert segment is not None and segment.channels["take", "read"].lengths() == [10 * US] * 3
    assert (measure := read_phase(result.run_dir, "measure")) is not None and measure.channels == {}
    with gzip.open(merge(result.run_dir).path) as trace:
        events = json.load(trace)["traceEvents"]
    found = [event for event in events if event["ph"] == "X" and event["cat"] in ("read", "write")]
    assert [event["name"] for event in found] == ["write send"] * 8 + ["read take"] * 3
    assert {event["dur"] for event in found if event["cat"] == "read"} == {10.0}
    threads = {(event["pid"], event["tid"]) for event in events if event.get("args") == {"name": "channels"}}
    assert threads == {(event["pid"], event["tid"]) for event in found} and len(threads) == 2


def test_people_see_both_beside_the_busy_times(result: Result) -> None:
    rows = [line.split() for line in text(result.record).splitlines()]
    assert ["task", "actor", "busy", "p50", "p95", "actor", "busy", "read", "p50", "write", "p50"] in rows
    assert next(row for row in rows if row[:2] == ["send", "one"])[-2:] == ["7", "µs"]
    assert next(row for row in rows if row[:2] == ["take", "two"])[-2:] == ["10", "µs"]
    page = report(result.run_dir)
    assert '<th class="n wide">read p50</th><th class="n wide">write p50</th>' in page
    assert '<td class="n wide">10 µs</td><td class="n wide"></td>' in page
    assert "reads and writes of channels" in page
