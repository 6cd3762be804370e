"""The run folder: safe names, nothing overwritten, whole files, readable after a kill, no secrets."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from jobs import fan, job, one

from cgspec.errors import NotAble, UsageError
from cgspec.folder import RunFolder, safe_name
from cgspec.record import Record, load
from cgspec.redaction import Redactor, looks_secret
from cgspec.running import run
from cgspec.showing import plain, short
from cgspec.views.summary import text, to_json
from cgspec.writing import as_yaml

STORED = Path(__file__).parent / "data" / "run-v1"


@pytest.mark.parametrize(
    "name, expected",
    [
        ("send-recv", "send-recv"),
        ("1f1b_2.x", "1f1b_2.x"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("..", "run"),
        ("", "run"),
        ("///", "run"),
        (".hidden", "hidden"),
        ("a b\tc\n", "a_b_c_"),
        ("a\0b", "a_b"),
        ("con", "_con"),
        ("COM1.txt", "_COM1.txt"),
        ("ünï", "ünï"),
        ("🚀", "run"),
        ("x. .", "x._"),
        ("\udcff", "run"),
    ],
)
def test_hostile_names_become_safe(name: str, expected: str) -> None:
    assert safe_name(name) == expected


def test_long_names_are_cut_between_characters() -> None:
    assert safe_name("ü" * 400) == "ü" * 50
    assert len(safe_name("x" * 10_000)) == 100


def test_every_run_has_its_own_folder_and_latest_is_the_last(tmp_path: Path) -> None:
    folders = [RunFolder(tmp_path, "x") for _ in range(20)]
    assert len({folder.path for folder in folders}) == 20
    assert (tmp_path / "x" / "latest").resolve() == folders[-1].path
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ-[0-9a-f]{6}", folders[0].id)


def test_latest_is_a_text_file_where_links_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(self: Path, target: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(Path, "symlink_to", no_links)
    folder = RunFolder(tmp_path, "x")
    folder.write("run.json", Record(id="1", name="x", status="passed", started="now").as_json())
    assert (tmp_path / "x" / "latest").read_text() == folder.id + "\n"
    assert load(tmp_path / "x" / "latest").id == "1"


def test_a_folder_of_the_users_that_is_called_latest_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "x" / "latest").mkdir(parents=True)
    (tmp_path / "x" / "latest" / "mine").write_text("mine")
    RunFolder(tmp_path, "x")
    assert (tmp_path / "x" / "latest" / "mine").read_text() == "mine"


@pytest.mark.parametrize("out", ["a-file", "a-file/below"])
def test_where_no_folder_can_be_made_a_sentence_says_so(tmp_path: Path, out: str) -> None:
    (tmp_path / "a-file").write_text("mine")
    with pytest.raises(NotAble, match=r"no run folder can be made in .*--out DIR chooses another") as caught:
        RunFolder(tmp_path / out, "x")
    assert caught.value.exit_code == 3
    assert (tmp_path / "a-file").read_text() == "mine"


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder(tmp_path, "x")
    folder.write("run.json", "old")

    def full(self: Path, *args: Any, **more: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    folder.write("run.json", "new")
    assert (folder.path / "run.json").read_text() == "old"
    assert [path.name for path in folder.path.iterdir()] == ["run.json"]
    assert folder.trouble is not None and "No space left on device" in folder.trouble


def test_a_record_is_still_written_where_the_disk_became_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder(tmp_path, "x")
    kept, real = folder.path / ".reserve", Path.write_text
    assert kept.stat().st_size == 256 * 2**10

    def full(self: Path, *args: Any, **more: Any) -> int:
        if kept.exists():
            raise OSError(28, "No space left on device")
        return real(self, *args, **more)

    monkeypatch.setattr(Path, "write_text", full)
    folder.write("run.json", "how it ended")
    assert (folder.path / "run.json").read_text() == "how it ended"
    assert folder.trouble is not None and "run.json" in folder.trouble


def test_odd_text_is_written(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, "x")
    folder.write("a/b.txt", "lone \udcff surrogate\r\n")
    assert (folder.path / "a" / "b.txt").read_bytes() == b"lone \\udcff surrogate\r\n"


def test_a_stored_run_still_loads() -> None:
    record = load(STORED)
    assert (record.schema_version, record.status, record.name) == (1, "passed", "small")
    measure = record.phase("measure")
    assert measure is not None and measure.latency_us is not None
    assert measure.iterations == 100
    assert [actor.name for actor in record.actors] == ["sender.0", "sender.1", "receiver"]
    assert record.actors[2].tasks == ["left", "right"]
    assert record.limits is not None and record.limits.busiest_actor == "receiver"
    assert "expectations: 3 passed" in text(record)


def test_a_record_of_a_later_minor_version_loads(tmp_path: Path) -> None:
    data = json.loads((STORED / "run.json").read_text())
    data["something_new"] = {"a": 1}
    data["phases"][0]["another"] = 2
    (tmp_path / "run.json").write_text(json.dumps(data))
    assert load(tmp_path).name == "small"


@pytest.mark.parametrize(
    "content, message",
    [
        (None, "is no run folder"),
        ("", "is no record of a run"),
        ("[]", "is no record of a run"),
        ('{"schema_version": 1}', "is no record of a run: id"),
        ('{"schema_version": 99, "id": "1", "name": "x", "status": "passed", "started": ""}', "by a later cgspec"),
    ],
)
def test_what_is_no_record_is_refused_with_a_sentence(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(UsageError, match=message):
        load(tmp_path)


KILLED = """
import sys, os, signal, threading
sys.path.insert(0, {tests!r})
from pathlib import Path
from jobs import job, one
from cgspec.running import run
threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
run(job(one("nap", 1, {{"seconds": 0.02}}), Path({root!r}), run={{"iterations": 100000, "warmup": 3}}))
"""


def test_a_killed_run_leaves_a_record_that_says_so(tmp_path: Path) -> None:
    code = KILLED.format(tests=str(Path(__file__).parent), root=str(tmp_path))
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    assert subprocess.run([sys.executable, "-c", code], env=env, check=False).returncode == -9
    record = load(tmp_path / "runs" / "small" / "latest")
    assert (record.status, record.state) == ("running", "killed")
    assert [phase.name for phase in record.phases] == ["warmup"]
    assert "small: killed" in text(record)


@pytest.mark.parametrize(
    "key, secret",
    [
        ("HF_TOKEN", True),
        ("api_key", True),
        ("apiKey", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("password", True),
        ("dbPassword", True),
        ("key", True),
        ("tokens", False),
        ("tokenizer", False),
        ("monkey", False),
        ("keys", False),
        ("hidden", False),
        (3, False),
    ],
)
def test_keys_that_look_secret(key: object, secret: bool) -> None:
    assert looks_secret(key) is secret


SECRETS = ["hunter2-hunter2", "abc", "sk-from-the-environment", "tok-1234", "s3cret!", "98765432"]


def secret_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("SOME_NAME", SECRETS[2])
    raw: dict[str, Any] = {
        "vars": {"password": SECRETS[0], "tokens": 2048},
        "actors": {
            "only": {
                "class": "actors.py:Counter",
                "env": {"HF_TOKEN": SECRETS[3], "PIN": "wxyz", "DB_PASSWORD": SECRETS[1]},
                "args": {"api_key": SECRETS[4], "start": 0, "secret": int(SECRETS[5])},
            }
        },
        "inputs": {"x": {"$env": "SOME_NAME", "default": "none"}},
        "tasks": {"key": {"call": "only.echo", "in": {"key": "inputs.x", "token": "inputs.x"}, "with": {"token": 5}}},
    }
    return job(one("echo", {"$env": "SOME_NAME"}), tmp_path, resolved=raw, run={"iterations": 2}), raw


def test_no_file_of_a_run_holds_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = secret_job(tmp_path, monkeypatch)
    result = run(made)
    assert result.last == SECRETS[2]
    assert SECRETS[2] not in text(result.record) + json.dumps(to_json(result.record))
    for path in result.run_dir.rglob("*"):
        if path.is_file():
            found = [secret for secret in SECRETS if re.search(rf"\b{re.escape(secret)}", path.read_text())]
            assert not found, (path.name, found)


def test_the_resolved_spec_says_what_it_needs_in_place_of_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, raw = secret_job(tmp_path, monkeypatch)
    resolved = yaml.safe_load((run(made).run_dir / "spec.resolved.yaml").read_text())
    assert resolved["actors"]["only"]["env"] == {
        "HF_TOKEN": {"$env": "HF_TOKEN"},
        "PIN": "wxyz",
        "DB_PASSWORD": {"$env": "DB_PASSWORD"},
    }
    assert resolved["tasks"] == raw["tasks"]
    assert resolved["inputs"] == raw["inputs"]
    assert resolved["vars"]["tokens"] == 2048
    assert resolved["root"] == str(tmp_path)


def test_secrets_in_the_text_of_a_spec_are_hidden_whatever_their_style() -> None:
    redactor = Redactor({})
    spec = """
env: {HF_TOKEN: abc, OTHER: def}   # a comment
password: 'it''s'
"api_key": "a \\" b"
token: $var
tokens: 5
in: {token: 5}
"""
    assert (
        redactor.yaml(spec)
        == """
env: {HF_TOKEN: "<redacted>", OTHER: def}   # a comment
password: "<redacted>"
"api_key": "<redacted>"
token: $var
tokens: 5
in: {token: 5}
"""
    )


def test_overrides_are_shown_without_secrets() -> None:
    overrides = {"vars.api_key": "abcdef", "vars.rows": 4}
    redactor = Redactor({}, overrides)
    assert redactor.overrides(overrides) == {"vars.api_key": "<redacted>", "vars.rows": 4}
    assert redactor.text("x abcdef y") == "x <redacted> y"


def test_a_default_of_env_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVICE", "cuda")
    assert Redactor({"x": {"$env": "DEVICE", "default": "cuda"}}).text("on cuda") == "on cuda"


YAML_DATA: dict[str, Any] = {
    "texts": [
        "1e-4",
        "0o17",
        "0x1f",
        "12",
        "1.5",
        ".5",
        "on",
        "yes",
        "null",
        "~",
        "",
        " a",
        "a: b",
        "# c",
        "- d",
        "é🚀",
    ],
    "lines": "one\ntwo\n",
    "numbers": [1, 1.5, 1e-4, 1e300, -0.0, float("inf"), True, None],
    "$key": {"$expr": "i + 1"},
    "1": 1,
}


def test_data_survives_yaml_1_1_and_1_2() -> None:
    written = as_yaml(YAML_DATA)
    assert yaml.safe_load(written) == YAML_DATA | {"numbers": [1, 1.5, 1e-4, 1e300, -0.0, float("inf"), True, None]}
    assert '"1e-4"' in written and '"0o17"' in written


@pytest.mark.parametrize(
    "value, expected",
    [
        ((1, [2.5, None, True]), [1, [2.5, None, True]]),
        (torch.float16, "float16"),
        (torch.Size([2, 3]), [2, 3]),
        (torch.ones(2, 1), {"shape": [2, 1], "dtype": "float32", "values": [[1.0], [1.0]]}),
        (torch.tensor(3), {"shape": [], "dtype": "int64", "values": 3}),
        (torch.ones(0, 3), {"shape": [0, 3], "dtype": "float32", "values": []}),
        (torch.tensor([float("nan")]), {"shape": [1], "dtype": "float32", "values": ["nan"]}),
        (torch.ones(2000), {"shape": [2000], "dtype": "float32"}),
        (torch.ones(1).to(torch.float8_e4m3fn), {"shape": [1], "dtype": "float8_e4m3fn", "values": [1.0]}),
        ({1: float("inf")}, {"1": "inf"}),
        (1j, "1j"),
        (b"ab", "b'ab'"),
    ],
)
def test_values_become_json(value: object, expected: object) -> None:
    assert plain(value) == expected
    json.dumps(plain(value), allow_nan=False)


def test_large_and_deep_values_stay_small() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    for value in (deep, [[0] * 1000] * 1000, "x" * 10**7, {n: n for n in range(10**5)}, 10**5000):
        assert len(short(value)) <= 160
        assert len(json.dumps(plain(value))) < 2_000_000


def test_the_record_of_a_run_holds_what_is_needed_to_judge_it(tmp_path: Path) -> None:
    result = run(job(fan(), tmp_path, run={"iterations": 50, "warmup": 2}))
    record = load(result.run_dir)
    assert record == result.record or record.id == result.record.id
    assert record.machine.versions["python"] == ".".join(map(str, sys.version_info[:3]))
    assert record.machine.cpus == os.cpu_count()
    assert record.root == str(tmp_path)
    assert all(actor.peak_bytes and actor.utilisation is not None for actor in record.actors)
    assert record.tasks["double"].line == "small.yaml:20"
    expected = {"graph.svg", "log.txt", "run.json", "samples.csv", "spec.resolved.yaml", "spec.yaml", "timeline.csv"}
    assert {path.name for path in result.run_dir.iterdir()} >= expected
    assert not [path for path in result.run_dir.rglob("*") if path.name.startswith(".")]


def test_the_users_files_are_kept_as_they_were_and_what_git_says_has_changed(tmp_path: Path) -> None:
    made = job(one("echo", {"$call": "deep/data.py:batch", "args": {"n": {"$expr": "i"}}}), tmp_path)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "data.py").write_text("def batch(n):\n    return n\n")
    (tmp_path / "other.py").write_text("unnamed = 1\n")
    for command in ("init -q", "add .", "-c user.name=a -c user.email=a@b commit -qm first"):
        subprocess.run(["git", *command.split()], cwd=tmp_path, check=True)
    (tmp_path / "actors.py").write_text((tmp_path / "actors.py").read_text() + "# changed\n")
    result = run(made)
    source = result.run_dir / "source"
    kept = sorted(path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file())
    assert kept == ["actors.py", "deep/data.py", "git.diff"]
    assert (source / "actors.py").read_text().endswith("# changed\n")
    assert "+# changed" in (source / "git.diff").read_text()
    assert (result.record.machine.git_dirty, len(result.record.machine.git_commit or "")) == (True, 40)
