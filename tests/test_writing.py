"""What is written as YAML reads back the same by our own strict reader."""

from hypothesis import example, given
from hypothesis import strategies as st

from cgspec import source
from cgspec.writing import as_yaml

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8"))
DATA = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab-.1"), inner), max_leaves=8
)


@given(st.dictionaries(st.sampled_from("xyz"), DATA, min_size=1))
@example({"x": "\x85", "y": ["a\u2028b", "\u2029 "], "z": {"a": "\n\r\n", "b": "\ufeff\t"}})
def test_data_reads_back_the_same(data):
    document = source.read(as_yaml(data), "written.yaml")
    assert (document.data, document.findings) == (data, [])


def test_small_and_large_numbers_carry_no_tag():
    text = as_yaml({"a": 1e-05, "b": 1e300, "c": float("inf"), "d": "1e-05", "e": "on"})
    assert "!!" not in text
    assert source.read(text, "x").data == {"a": 1e-05, "b": 1e300, "c": float("inf"), "d": "1e-05", "e": "on"}
