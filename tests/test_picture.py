"""Pictures: what is in them, that no name can break them, and that they are the same every time."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from graphs_by_hand import Sketch, kinds, one_f_one_b, send_recv, tp_pp

from cgspec.errors import UsageError
from cgspec.graph import Graph
from cgspec.views import palette
from cgspec.views.picture import FORMATS, compose, dot_text, render

GOLDEN = Path(__file__).parent / "data" / "pictures"
GRAPHS = {graph.name: graph for graph in (send_recv(), kinds(), tp_pp(), one_f_one_b())}
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)


def svg_texts(graph: Graph, **options: object) -> list[str]:
    """What a reader of the SVG can read, tooltips left aside."""
    root = ET.fromstring(render(graph, "svg", **options))  # type: ignore[arg-type]
    return ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]


@every_graph
def test_svg_shows_every_task_method_actor_class_input_and_output(graph: Graph) -> None:
    texts = svg_texts(graph)
    wanted = [graph.name]
    wanted += [name for task in graph.tasks for name in (task.name, task.label, *(task.returns or ()))]
    wanted += [actor.name for actor in graph.actors] + [item.name for item in graph.inputs]
    wanted += [str(name) for name, _ in graph.outputs]
    assert [name for name in wanted if name not in texts] == []
    assert all(any(str(actor.class_ref) in text for text in texts) for actor in graph.actors)


def test_svg_labels_links_by_how_they_travel() -> None:
    assert svg_texts(send_recv()).count("accelerator 8 MiB") == 1
    assert svg_texts(send_recv()).count("host") == 4  # three inputs and one output
    texts = svg_texts(kinds())
    assert [texts.count(kind) for kind in ("auto", "shm", "local", "host")] == [2, 3, 1, 4]


def test_tasks_of_one_actor_have_one_colour_and_families_differ() -> None:
    dot = dot_text(kinds())
    assert dot.count(f'BGCOLOR="{palette.fill(0)}"') == 1  # enc
    assert dot.count(f'BGCOLOR="{palette.fill(1)}"') == 2  # dec
    assert dot.count(f'BGCOLOR="{palette.fill(2)}"') == 3  # log


def test_colours_of_many_families_differ_and_carry_text() -> None:
    fills = [palette.fill(family) for family in range(24)]
    assert len(set(fills)) == 24
    assert min(palette.contrast(palette.INK, fill) for fill in fills) >= 4.5
    assert min(palette.contrast(palette.MUTED, palette.wash(family)) for family in range(24)) >= 4.5


def test_strokes_have_contrast_on_white_and_differ_without_colour() -> None:
    strokes = palette.STROKES.values()
    assert min(palette.contrast("#ffffff", stroke.colour) for stroke in strokes) >= 3
    assert min(palette.contrast("#ffffff", stroke.ink) for stroke in strokes) >= 4.5
    assert len({(stroke.width, stroke.dash) for stroke in strokes}) == len(strokes)


def test_multi_returns_are_ports_and_a_whole_read_has_its_own() -> None:
    dot = dot_text(kinds())
    assert 't0:r0:e -> t1 [id="e1" class="shm"' in dot
    assert 't0:r3:e -> t2 [id="e3" class="shm"' in dot  # the tuple, in a list


def test_members_of_a_collective_are_joined_to_one_plate() -> None:
    joints = [line.split("[")[0].strip() for line in dot_text(tp_pp()).splitlines() if 'class="group"' in line]
    assert joints == ["t2 -> g0", "t3 -> g0", "t10 -> g1", "t11 -> g1"]


def test_effect_and_unread_tasks_are_told_apart() -> None:
    texts = svg_texts(kinds())
    assert texts.count("called for its effect") == 2
    assert texts.count("result not read") == 1


def test_constants_are_shown_on_demand() -> None:
    assert "scale = 2" not in svg_texts(kinds())
    assert {"scale = 2", "every = 10"} <= set(svg_texts(kinds(), constants=True))


def test_png_is_in_twice_the_resolution_of_a_screen() -> None:
    png = render(send_recv(), "png")
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    points = ET.fromstring(render(send_recv(), "svg")).attrib["width"].removesuffix("pt")
    assert width == pytest.approx(float(points) * 192 / 72, rel=0.02)
    assert height > 300


def test_huge_png_is_bounded() -> None:
    sketch = Sketch("tall")
    actor = sketch.actor("a")
    for number in range(1500):
        sketch.task(f"t{number}", actor, returns=(), reads={"x": sketch.input(f"x{number}")})
    png = render(sketch.graph(), "png")
    width, height = struct.unpack(">II", png[16:24])
    assert max(width, height) <= 16_100 and width * height <= 17_000_000


@pytest.mark.parametrize(("zone", "date"), [("UTC", b"19700101000000Z"), ("XXX-3:30", b"19700101000000+00'00")])
def test_pdf_does_not_tell_the_time_of_day(monkeypatch: pytest.MonkeyPatch, zone: str, date: bytes) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    pdf = render(send_recv(), "pdf")
    monkeypatch.undo()
    time.tzset()
    assert pdf.startswith(b"%PDF-")
    assert re.findall(rb"Date \(D:([^)]*)", pdf) == [date]


@pytest.mark.parametrize("form", FORMATS)
def test_same_graph_gives_the_same_bytes(form: str) -> None:
    assert render(kinds(), form) == render(kinds(), form)


def test_a_fresh_process_gives_the_same_bytes() -> None:
    code = "import sys; from graphs_by_hand import kinds; from cgspec.views.picture import render; " + (
        "sys.stdout.buffer.write(render(kinds(), 'svg') + render(kinds(), 'pdf')); "
        "assert not {'ray', 'torch', 'numpy'} & sys.modules.keys()"
    )
    here = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": f"{here}{os.pathsep}{here.parent}", "PYTHONHASHSEED": "7"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True, timeout=60)
    assert done.stdout == render(kinds(), "svg") + render(kinds(), "pdf")
    assert done.stderr == b""


@every_graph
def test_dot_text_is_as_it_was_read(graph: Graph) -> None:
    assert dot_text(graph) == (GOLDEN / f"{graph.name}.dot").read_text(encoding="utf-8")


def test_unknown_format_offers_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean svg"):
        render(send_recv(), "svgg")


def dot_links(graph: Graph, **options: object) -> list[tuple[str, str]]:
    """(ends, label) of every link in the DOT text."""
    lines = [line for line in dot_text(graph, **options).splitlines() if " -> " in line]  # type: ignore[arg-type]
    labels = [re.search(r'POINT-SIZE="9">(.*?)<', line) for line in lines]
    return [(line.split(" [")[0].strip(), found[1] if found else "") for line, found in zip(lines, labels, strict=True)]


def test_collapsed_families_merge_links_and_say_which_members_they_join() -> None:
    assert dot_links(one_f_one_b(4, 8), collapse=True) == [
        ("i0:e -> t0", "host ×8"),  # noqa: RUF001
        ("t0 -> t0", "accelerator ×24 (pp-1)"),  # noqa: RUF001
        ("t0 -> t1", "local ×8 (pp=3)"),  # noqa: RUF001
        ("i1:e -> t1", "host ×8"),  # noqa: RUF001
        ("t2 -> t2", "accelerator ×24 (pp+1)"),  # noqa: RUF001
        ("t1 -> t2", "local ×8"),  # noqa: RUF001
        ("t1 -> o0", "host ×8 (mb=*)"),  # noqa: RUF001
        ("t2 -> t3", ""),  # keeps step, which reads nothing, behind bwd
    ]


def test_collapsed_families_show_axes_and_collectives_their_groups() -> None:
    texts = svg_texts(tp_pp(3, 4), collapse=True)
    assert {"part [pp=3 × tp=4]", "stage [pp=3 × tp=4]", "3 groups of 4 ranks"} <= set(texts)  # noqa: RUF001


@pytest.mark.parametrize(("microbatches", "collapsed"), [(10, False), (11, True)])
def test_graphs_of_more_than_a_hundred_tasks_are_collapsed_and_say_so(microbatches: int, collapsed: bool) -> None:
    graph = one_f_one_b(4, microbatches)  # 9 tasks for each microbatch and 4 steps
    remark = f"each family is one box: {len(graph.tasks)} tasks are more than the 100 that are drawn one by one"
    assert (compose(graph).remark == remark) is collapsed
    assert (remark in svg_texts(graph)) is collapsed
    assert compose(graph, collapse=False).remark == ""


def test_around_draws_what_is_within_hops() -> None:
    scene = compose(one_f_one_b(4, 40), around="fwd.1.2", hops=2)
    assert [box.name for box in scene.boxes] == ["fwd.0.2", "fwd.1.2", "fwd.2.2", "fwd.3.2", "x.2"]
    assert scene.remark == "within 2 hops of fwd.1.2: 4 of 364 tasks"


def test_around_takes_members_of_a_collective_for_neighbours() -> None:
    boxes = {box.name for box in compose(tp_pp(1, 3), around="total.0.0", hops=1).boxes}
    assert boxes == {"part.0.0", "total.0.0", "total.0.1", "total.0.2", "hop.0.0", "allreduce sum"}


@pytest.mark.parametrize("name", ["fwd", "inputs.x.1", "inputs.x", "outputs.loss", "stage.1", "stage"])
def test_around_takes_families_inputs_outputs_and_actors(name: str) -> None:
    assert any(True for _ in compose(one_f_one_b(), around=name).boxes)
    assert any(True for _ in compose(one_f_one_b(), around=name, collapse=True).boxes)


def test_around_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"nothing in this graph is called fwd\.9\.9: did you mean fwd"):
        compose(one_f_one_b(), around="fwd.9.9")


def test_a_large_graph_without_families_is_drawn_one_by_one() -> None:
    sketch = Sketch("no families")
    actor = sketch.actor("a")
    for number in range(120):
        sketch.task(f"t{number}", actor, returns=())
    scene = compose(sketch.graph())
    assert (len(scene.clusters[0].boxes), scene.remark) == (120, "")


def test_png_shows_letters_where_there_are_no_fonts(tmp_path: Path) -> None:
    (tmp_path / "fonts.conf").write_text(f"<fontconfig><dir>{tmp_path}</dir></fontconfig>")
    code = (
        "import sys; from graphs_by_hand import kinds; from cgspec.views.picture import render; "
        "from cgspec.views.layout import has_fonts; assert not has_fonts(); "
        "open(sys.argv[1], 'wb').write(render(kinds(), 'png'))"
    )
    here = Path(__file__).parent
    environment = {"PYTHONPATH": f"{here}{os.pathsep}{here.parent}", "FONTCONFIG_FILE": str(tmp_path / "fonts.conf")}
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "k.png")], env={**os.environ, **environment}, check=True, timeout=60
    )
    png = (tmp_path / "k.png").read_bytes()
    assert png.startswith(b"\x89PNG") and len(png) > 4000


@pytest.mark.parametrize("form", FORMATS.keys() - {"png", "pdf"})
@pytest.mark.parametrize("collapse", [True, False])
def test_secrets_are_not_in_pictures(form: str, collapse: bool) -> None:
    sketch = Sketch("secrets")
    consts = {"api_key": "sk-hush", "password": 731731, "key": 42}
    task = sketch.task("t", sketch.actor("a"), consts=consts, reads={"x": sketch.input("token", value="ghp-hush")})
    sketch.output("o", task)
    text = render(sketch.graph(), form, constants=True, collapse=collapse).decode()
    assert "hush" not in text and "731731" not in text and "42" in text


def test_pictures_are_drawn_without_a_stderr() -> None:
    code = "import os; os.close(2); from graphs_by_hand import kinds; from cgspec.views.picture import render; " + (
        "print(len(render(kinds(), 'svg')))"
    )
    here = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": f"{here}{os.pathsep}{here.parent}"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True, timeout=60)
    assert int(done.stdout) == len(render(kinds(), "svg"))
