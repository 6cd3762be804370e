"""The merged trace: what a run leaves can be opened, counted, and followed from task to task."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from finished import CHAIN, TORCH, by_hand, copy, edit, finish

from cgspec.alignment import align, foreign
from cgspec.errors import UsageError
from cgspec.record import load
from cgspec.streaming import Broken, TraceReader
from cgspec.timeline import Rows, read_phase, read_segments
from cgspec.views import trace

Event = dict[str, Any]
TRACE = "trace/local.pt.trace.json.gz"


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finish(tmp_path_factory.mktemp("chain"), CHAIN).run_dir


@pytest.fixture(scope="module")
def layers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finish(tmp_path_factory.mktemp("layers"), TORCH).run_dir


def events_of(run_dir: Path) -> list[Event]:
    with gzip.open(run_dir / trace.MERGED, "rt") as file:
        found: list[Event] = json.load(file)["traceEvents"]
    return found


def slices(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event["ph"] == "X" and event["cat"] == kind]


def processes(events: list[Event]) -> dict[int, str]:
    return {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}


def test_a_run_with_a_timeline_profile_leaves_a_slice_for_each_task_and_iteration(chain: Path) -> None:
    tasks = slices(events_of(chain), "task")
    assert Counter(event["name"] for event in tasks) == {"a": 12, "b": 12}
    assert sorted(event["args"]["iteration"] for event in tasks if event["name"] == "b") == list(range(12))
    assert {event["args"]["spec"].rsplit("/", 1)[-1] for event in tasks} == {"spec.yaml:11", "spec.yaml:12"}


def test_each_actor_is_a_process_and_the_driver_another(chain: Path) -> None:
    events = events_of(chain)
    assert processes(events) == {1: "driver", 2: "actor first", 3: "actor second"}
    assert {event["pid"] for event in slices(events, "task") if event["name"] == "b"} == {3}
    assert len(slices(events, "iteration")) == 12


def test_arrows_follow_the_edges_and_every_start_has_an_end_inside_a_slice(chain: Path) -> None:
    events = events_of(chain)
    arrows: dict[int, list[Event]] = {}
    for event in events:
        if event.get("cat") == "edge":
            arrows.setdefault(event["id"], []).append(event)
    assert len(arrows) == 2 * 12  # from the driver to a, from a to b
    assert all([event["ph"] for event in pair] == ["s", "f"] for pair in arrows.values())
    assert Counter((pair[0]["pid"], pair[1]["pid"]) for pair in arrows.values()) == {(1, 2): 12, (2, 3): 12}
    for event in (event for pair in arrows.values() for event in pair):
        assert any(_holds(other, event) for other in events), event
    assert all(pair[0]["ts"] <= pair[1]["ts"] for pair in arrows.values())


def _holds(event: Event, point: Event) -> bool:
    if event["ph"] != "X" or (event["pid"], event["tid"]) != (point["pid"], point["tid"]):
        return False
    return bool(event["ts"] <= point["ts"] <= event["ts"] + event["dur"])


def test_iterations_that_overlap_are_on_threads_of_their_own(tmp_path: Path) -> None:
    run_dir = by_hand(tmp_path / "run", {"a": lambda draw: 100.0}, iterations=30)  # one every 150 µs
    text = (run_dir / "samples.csv").read_text().replace(",150000\n", ",400000\n")
    (run_dir / "samples.csv").write_text(text)
    trace.merge(run_dir)
    threads: dict[int, list[Event]] = {}
    for event in slices(events_of(run_dir), "iteration"):
        threads.setdefault(event["tid"], []).append(event)
    assert {tid: len(events) for tid, events in threads.items()} == {1: 10, 2: 10, 3: 10}
    for events in threads.values():
        assert all(one["ts"] + one["dur"] <= next["ts"] for one, next in pairwise(events))


def test_the_record_names_the_merged_trace(chain: Path) -> None:
    files = [name for phase in load(chain).phases for name in phase.files]
    assert files == [trace.MERGED]


@pytest.mark.parametrize("owner", ["local", "only"])
def test_a_torch_trace_is_on_the_clock_of_the_tasks(owner: str, layers: Path, tmp_path: Path) -> None:
    """The local engine's trace is that of a whole process; under another name it is its actor's."""
    run_dir = copy(layers, tmp_path / "run")
    (run_dir / TRACE).rename(run_dir / f"trace/{owner}.pt.trace.json.gz")
    record = (run_dir / "run.json").read_text().replace(TRACE, f"trace/{owner}.pt.trace.json.gz")
    (run_dir / "run.json").write_text(record)
    assert not trace.merge(run_dir).notes
    events, process = events_of(run_dir), 3 if owner == "local" else 2
    assert processes(events)[process] == ("process local: all actors" if owner == "local" else "actor only")
    tasks, ranges = slices(events, "task"), slices(events, "user_annotation")
    assert Counter(event["name"] for event in tasks) == {"up": 9, "down": 9}
    ranges = [event for event in ranges if not event["name"].startswith("ProfilerStep#")]
    assert Counter(event["name"] for event in ranges) == {"up": 7, "down": 7}
    assert {event["pid"] for event in ranges} == {process} and {event["tid"] for event in ranges}.isdisjoint({0, 1})
    assert len(slices(events, "cpu_op")) >= 14
    recorded = [event for event in tasks if event["args"]["iteration"] >= 2]
    pairs = zip(_by_time(recorded), _by_time(ranges), strict=True)
    error = _stated_error(events, process)
    for task, seen in pairs:
        assert task["name"] == seen["name"]
        assert seen["ts"] <= task["ts"] + error
        assert seen["ts"] + seen["dur"] >= task["ts"] + task["dur"] - error


def _by_time(events: list[Event]) -> list[Event]:
    return sorted(events, key=lambda event: float(event["ts"]))


def _stated_error(events: list[Event], process: int) -> float:
    label = next(e["args"]["labels"] for e in events if e["name"] == "process_labels" and e["pid"] == process)
    amount, unit = label.split("±")[1].split()
    return float(amount) * {"ns": 1e-3, "µs": 1.0, "ms": 1e3}[unit] + 0.01


def test_the_offset_of_two_clocks_is_bracketed_by_the_tasks_that_both_saw() -> None:
    noted = Rows()
    for i in range(5):  # the last two of them were seen from 3 ns before to 7 and 5 ns after
        noted.add(i, 100 * i, 100 * i + 40)
    found = align({"a": [(5297, 5347), (5397, 5445)]}, {"a": noted})
    assert found is not None and (found.offset, found.error) == (5001, 4)  # -3 <= offset - 5000 <= 5


def test_no_common_task_means_no_alignment() -> None:
    assert align({"a": [(1, 2)]}, {"b": Rows()}) is None


def test_times_of_another_node_are_moved_to_the_drivers_clock(tmp_path: Path) -> None:
    busy = {"near": lambda draw: draw.uniform(80, 120), "far": lambda draw: draw.uniform(80, 120)}
    run_dir = by_hand(tmp_path / "run", busy, iterations=50)
    here = read_phase(run_dir, "measure")
    shift, lines = 86_400 * 10**9, (run_dir / "timeline.csv").read_text().splitlines()
    for number, line in enumerate(lines):
        phase, i, task, start, end = line.split(",")
        if task == "far":
            lines[number] = f"{phase},{i},{task},{int(start) + shift},{int(end) + shift}"
    (run_dir / "timeline.csv").write_text("\n".join(lines) + "\n")
    record = json.loads((run_dir / "run.json").read_text())
    record["actors"][0]["node"], record["actors"][1]["node"] = "10.0.0.1", "10.0.0.2"
    (run_dir / "run.json").write_text(json.dumps(record))
    merged = trace.merge(run_dir)
    assert merged.notes == ["the clock of 10.0.0.2 was aligned with the driver's in measure, to ±65 µs"]
    far = [event for event in slices(events_of(run_dir), "task") if event["name"] == "far"]
    assert here is not None and len(far) == 50
    for event, start in zip(far, here.tasks["far"].start, strict=True):
        assert event["ts"] == pytest.approx((start - here.driver.start[0]) / 1e3, abs=66)


def test_times_of_nodes_with_one_clock_stay(chain: Path) -> None:
    segment = read_phase(chain, "profile-timeline")
    assert segment is not None
    assert foreign(segment, {"a": "here", "b": "there"}) == {}


def test_a_broken_torch_trace_is_told_and_the_rest_is_merged(layers: Path, tmp_path: Path) -> None:
    whole = gzip.decompress((layers / TRACE).read_bytes())
    run_dir = tmp_path / "run"
    (run_dir / "trace").mkdir(parents=True)
    for name in ("run.json", "samples.csv", "timeline.csv", "plan.json"):
        (run_dir / name).write_bytes((layers / name).read_bytes())
    (run_dir / TRACE).write_bytes(gzip.compress(whole[: len(whole) * 2 // 3])[:-9])
    merged = trace.merge(run_dir)
    assert len(merged.notes) == 1 and merged.notes[0].startswith("local.pt.trace.json.gz is broken: it ends too early")
    events = events_of(run_dir)
    assert len(slices(events, "task")) == 18 and 0 < len(slices(events, "cpu_op")) < 14 * 5
    assert _stated_error(events, 3) < 500  # µs: the ranges that are left still find their iterations


def test_an_unprofiled_run_shows_its_measure_phase(tmp_path: Path) -> None:
    run_dir = by_hand(tmp_path / "run", {"a": lambda draw: 100.0, "b": lambda draw: 200.0}, iterations=20)
    merged = trace.merge(run_dir)
    assert merged.phases == ["measure"]
    assert Counter(event["name"] for event in slices(events_of(run_dir), "task")) == {"a": 20, "b": 20}
    assert trace.told(merged).splitlines()[0].endswith("events of measure")


def test_a_phase_that_is_not_there_is_named_with_those_that_are(chain: Path) -> None:
    with pytest.raises(UsageError, match="holds no times of nonsense; it has warmup, measure, profile-timeline"):
        trace.merge(chain, phases=["nonsense"])


def test_two_phases_with_one_label_are_two_segments(tmp_path: Path) -> None:
    both = CHAIN.replace("profile: timeline", "profile: [timeline, {kind: timeline, iterations: 4, warmup: 1}]")
    run_dir = finish(tmp_path, both).run_dir
    found = [(segment.label, len(segment.tasks["b"]), len(segment.driver)) for segment in read_segments(run_dir)]
    assert found[-2:] == [("profile-timeline", 12, 12), ("profile-timeline", 5, 5)]
    assert Counter(event["name"] for event in slices(events_of(run_dir), "task")) == {"a": 17, "b": 17}


def test_a_timeline_that_was_cut_off_is_read_up_to_there(tmp_path: Path) -> None:
    run_dir = by_hand(tmp_path / "run", {"a": lambda draw: 100.0}, iterations=20)
    text = (run_dir / "timeline.csv").read_text()
    (run_dir / "timeline.csv").write_text(text[:-30])
    phase = read_phase(run_dir, "measure")
    assert phase is not None and len(phase.tasks["a"]) == 19


def _read(text: bytes, path: Path) -> Iterator[Event]:
    path.write_bytes(text)
    return TraceReader(path).events()


def test_events_are_read_whatever_the_form_of_the_file(tmp_path: Path) -> None:
    events = [{"ph": "X", "name": 'br{ace "]', "ts": n, "args": {"deep": [[{}], "\u20ac"]}} for n in range(500)]
    plain = json.dumps({"before": {"a": [1]}, "traceEvents": events, "after": 12}, indent=3)
    for text in (plain.encode(), gzip.compress(plain.encode()), json.dumps(events).encode()):
        assert list(_read(text, tmp_path / "trace")) == events


def test_windows_may_end_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [{"ph": "X", "ts": 12345.25 + n, "n": -n, "t": [True, None]} for n in range(20)]
    text = json.dumps({"traceEvents": events, "base": 1790857026000000000}).encode()
    for size in range(1, 40):
        monkeypatch.setattr("cgspec.streaming.CHUNK", size)
        (tmp_path / "trace").write_bytes(text)
        reader = TraceReader(tmp_path / "trace")
        assert list(reader.events()) == events
        assert reader.header == {"base": 1790857026000000000}


@pytest.mark.parametrize(
    "text", [b"", b"12", b'{"traceEvents": [{"a": 1}, {"b"', b'{"traceEvents": [{"a": 1} x', b"{]"]
)
def test_what_is_no_trace_is_broken(text: bytes, tmp_path: Path) -> None:
    with pytest.raises(Broken):
        list(_read(text, tmp_path / "trace"))


def test_a_run_without_times_is_refused(tmp_path: Path) -> None:
    run_dir = by_hand(tmp_path / "run", {"a": lambda draw: 1.0}, iterations=2)
    (run_dir / "samples.csv").unlink()
    (run_dir / "timeline.csv").unlink()
    edit(run_dir, status="interrupted")
    with pytest.raises(UsageError, match="it has no phases"):
        trace.merge(run_dir)


def test_presenters_load_neither_ray_nor_torch(chain: Path) -> None:
    code = (
        "import sys\n"
        "from cgspec import comparing\n"
        "from cgspec.views import compare, report, runs, trace\n"
        "run = sys.argv[1]\n"
        "trace.merge(run), report.report(run), compare.text(comparing.compare(run, run))\n"
        "print(sorted({'ray', 'torch', 'numpy'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(chain)], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
