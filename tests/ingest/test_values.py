"""What does not fit its type is not told."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from skilltrial.tasks.ingest.values import as_json, clip, moment, number, size_of, whole

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (0, 0),
        (7.0, 7),
        (7.5, None),
        (True, None),
        ("7", None),
        (2**63, None),
        (-(2**63), -(2**63)),
        (float("inf"), None),
    ],
)
def test_whole_numbers(value: object, found: int | None) -> None:
    assert whole(value) == found


@pytest.mark.parametrize(
    ("value", "found"), [(0, 0.0), (1.5, 1.5), (float("nan"), None), (10**400, None), (True, None)]
)
def test_real_numbers(value: object, found: float | None) -> None:
    assert number(value) == found


@pytest.mark.parametrize(
    "value",
    [
        "2026-01-02T03:04:05.678Z",
        "2026-01-02T05:04:05.678+02:00",
        "2026-01-02T03:04:05.678",
        1767323045678,
        1767323045.678,
    ],
)
def test_time_stamps_are_utc(value: object) -> None:
    assert moment(value) == MOMENT


@pytest.mark.parametrize("value", ["soon", None, True, 1e300, "0001-01-01T00:00:00+23:00", {}])
def test_what_is_no_time_stamp_is_not_told(value: object) -> None:
    assert moment(value) is None


def test_texts_are_cut_by_characters_and_measured_in_bytes() -> None:
    assert (clip("éé", 1), size_of("éé"), size_of("ab")) == ("é", 4, 2)


def test_numbers_beyond_64_bits_are_written() -> None:
    assert as_json({"n": 2**70}) == '{"n":1180591620717411303424}'
