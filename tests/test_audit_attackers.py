"""How attackers count what they saw, against counting one by one."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dprisk.auditing.evidence.attackers import Lookup
from dprisk.auditing.evidence.counting import counted
from dprisk.auditing.evidence.views import NOTHING, Seen, Value

SMALL, LARGE = st.integers(-3, 3), st.sampled_from([-(2**63), -(2**63) + 1, -5, 0, 7, 2**40, 2**63 - 2, 2**63 - 1])
TOKENS = st.one_of(SMALL, LARGE, st.just(NOTHING))


@given(st.lists(st.tuples(TOKENS, st.integers(0, 4)), min_size=1, max_size=60))
def test_tokens_are_counted_as_one_by_one(runs: list[tuple[int, int]]) -> None:
    tokens, records = (np.array(part, dtype=np.int64) for part in zip(*runs, strict=True))
    known, named, top, rest = counted(tokens, records)
    total = Counter(token for token, _ in runs if token != NOTHING)
    assert known.tolist() == sorted(token for token, times in total.items() if times >= 2)
    for token, name, most, others in zip(*(part.tolist() for part in (known, named, top, rest)), strict=True):
        times = Counter(record for seen, record in runs if seen == token)
        assert (most, most + others) == (max(times.values()), total[token])
        assert name == min(record for record in times if times[record] == most)


@given(st.dictionaries(st.one_of(SMALL, LARGE), st.integers(0, 4)), st.lists(TOKENS, min_size=1))
def test_a_lookup_names_what_its_token_stands_for(known: dict[int, int], outputs: list[int]) -> None:
    tokens = np.array(sorted(known), dtype=np.int64)
    rule = Lookup(Value(), tokens, np.array([known[token] for token in sorted(known)], dtype=np.int64))
    found = rule.answers(Seen(np.array(outputs, dtype=np.int64))).tolist()
    assert found == [known.get(output, -1) for output in outputs]
