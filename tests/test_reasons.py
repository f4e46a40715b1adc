"""The reasons for a compaction, and the first design's deprecated names."""

from __future__ import annotations

import copy
import json
import pickle
import warnings

import pytest

from ctxfast import CompactReason, compat


def test_reasons_are_their_values() -> None:
    assert [reason.value for reason in CompactReason] == ["proactive", "retry", "overflow"]
    for reason in CompactReason:
        assert CompactReason(reason.value) is reason
        assert reason == reason.value
        assert f"{reason}" == str(reason) == reason.value
        assert f"{reason:>10}" == reason.value.rjust(10)
        assert json.loads(json.dumps({"reason": reason})) == {"reason": reason.value}
        assert pickle.loads(pickle.dumps(reason)) is copy.deepcopy(reason) is reason


def test_the_older_values_are_accepted() -> None:
    assert CompactReason("proactive_budget") is CompactReason.PROACTIVE
    assert CompactReason("llm_retry") is CompactReason.RETRY
    for wrong in ("PROACTIVE", "summarize", "", None, 0, ["proactive_budget"]):
        with pytest.raises(ValueError, match="is not a valid CompactReason"):
            CompactReason(wrong)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ContextCompressReasonProactive", CompactReason.PROACTIVE),
        ("ContextCompressReasonRetry", CompactReason.RETRY),
        ("FRESH_TAIL_COUNT", 32),
    ],
)
def test_deprecated_names_are_the_same_objects_and_warn_once(name: str, value: object) -> None:
    vars(compat).pop(name, None)  # as in a new process
    with pytest.warns(DeprecationWarning, match=f"^{name} is deprecated: use ctxfast[.]") as caught:
        assert getattr(compat, name) is value
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert getattr(compat, name) is value


def test_the_module_of_old_names_has_no_others() -> None:
    with pytest.raises(AttributeError, match="no attribute 'FreshTailCount'"):
        compat.FreshTailCount  # type: ignore[attr-defined] # noqa: B018
