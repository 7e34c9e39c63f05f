import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanista.envs.tracing.trace import CallTrace


@given(st.lists(st.integers(0, 2**32 - 1), max_size=50))
def test_a_trace_keeps_order_and_repetition(ids: list[int]) -> None:
    trace = CallTrace(ids)
    assert trace.ids.tolist() == ids
    assert len(trace) == len(ids)
    assert trace.ids.dtype == (np.uint16 if not ids or max(ids) < 2**16 else np.uint32)
    assert copy.deepcopy(trace) == trace == CallTrace(np.array(ids, dtype=np.int64))
    assert hash(copy.copy(trace)) == hash(trace)


@given(st.lists(st.integers(0, 40), max_size=200))
def test_a_bag_counts_each_function(ids: list[int]) -> None:
    found, counts = CallTrace(ids).bag()
    assert dict(zip(found.tolist(), counts.tolist(), strict=True)) == {
        item: ids.count(item) for item in set(ids)
    }
    assert found.tolist() == sorted(set(ids))


def test_a_trace_cannot_be_changed() -> None:
    trace = CallTrace([1, 2])
    with pytest.raises(AttributeError):
        trace.ids = np.zeros(2, dtype=np.uint16)
    with pytest.raises(ValueError, match="read-only"):
        trace.ids[0] = 3


@pytest.mark.parametrize("bad", [[-1], [2**32], np.zeros((2, 2), dtype=np.int64)])
def test_what_is_no_list_of_ids_is_refused(bad: object) -> None:
    with pytest.raises(ValueError, match="flat list of ids"):
        CallTrace(bad)  # type: ignore[arg-type]
