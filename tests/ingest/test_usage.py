"""Tokens count once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skilltrial.tasks.ingest.records import Usage
from skilltrial.tasks.ingest.usage import MessageTally, merge, model_usage_of, total, usage_of


def test_an_empty_usage_is_not_told_and_a_zero_is() -> None:
    assert usage_of({}, source="result") is None
    assert usage_of(None, source="result") is None
    assert usage_of({"input_tokens": True, "output_tokens": "7"}, source="result") is None
    zero = usage_of({"input_tokens": 0}, source="result")
    assert zero is not None
    assert (zero.input_tokens, zero.output_tokens) == (0, None)


def test_model_usage_is_read_in_both_spellings() -> None:
    told = {"a": {"inputTokens": 1, "costUSD": 0}, "b": {"input_tokens": 2, "output_tokens": 3}, "c": None}
    assert {model: (u.input_tokens, u.output_tokens, u.cost_usd) for model, u in model_usage_of(told).items()} == {
        "a": (1, None, 0.0),
        "b": (2, 3, None),
        "c": (None, None, None),
    }


def test_sums_keep_what_is_not_told_apart_from_zero() -> None:
    summed = total([Usage(1, cost_usd=0.1), Usage(2, 5, exact=False)])
    assert summed == Usage(3, 5, cost_usd=0.1, exact=False)
    assert total([]) is None
    assert merge({"a": Usage(1)}, {"a": Usage(2), "b": Usage(3)}) == {"a": Usage(3), "b": Usage(3)}


@given(st.lists(st.tuples(st.integers(0, 9000), st.integers(0, 50)), max_size=60))
def test_repeated_events_add_nothing_and_old_messages_are_kept_in_sums(events: list[tuple[int, int]]) -> None:
    tally, largest = MessageTally(), dict[str, int]()
    for number, tokens in events:
        identifier = f"m{number % 40}"
        largest[identifier] = max(largest.get(identifier, 0), tokens)
        for _ in range(2):
            tally.see(identifier, "model", number % 40 < 30, {"output_tokens": tokens})
    main = [tokens for identifier, tokens in largest.items() if int(identifier[1:]) < 30]
    assert tally.messages == len(largest)
    found = tally.main()
    assert (found.output_tokens if found else None) == (sum(main) if main else None)
    assert sum(usage.output_tokens or 0 for usage in tally.by_model().values()) == sum(largest.values())


def test_memory_of_the_tally_is_bounded_and_its_sum_whole() -> None:
    tally = MessageTally()
    for number in range(10_000):
        tally.see(f"m{number}", "model", True, {"output_tokens": 1})
    found = tally.main()
    assert found is not None
    assert (found.output_tokens, tally.messages, len(tally._open)) == (10_000, 10_000, 4096)


def test_the_end_of_a_message_makes_its_usage_exact() -> None:
    tally = MessageTally()
    tally.see("a", "model", True, {"input_tokens": 9, "output_tokens": 1})
    tally.end("a", {"output_tokens": 57})
    assert tally.main() == Usage(9, 57, exact=True, source="message_delta")
    tally.see("b", "model", True, {"output_tokens": 1})
    found = tally.main()
    assert found is not None
    assert (found.output_tokens, found.exact) == (58, False)
