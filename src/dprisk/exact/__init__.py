"""The best attacker's advantage and success, computed: Theorem 4.3 and the structure that makes it quick."""

from dprisk.exact.theorem import (
    TIE,
    advantage_by_record,
    best_attacker,
    best_success,
    block_size,
    enumerate_outputs,
    posterior,
    require_match,
)

__all__ = [
    "TIE",
    "advantage_by_record",
    "best_attacker",
    "best_success",
    "block_size",
    "enumerate_outputs",
    "posterior",
    "require_match",
]
