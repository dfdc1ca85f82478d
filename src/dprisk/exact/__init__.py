"""The best attacker's advantage and success, computed: Theorem 4.3 and the structure that makes it quick."""

from dprisk.exact.forms import FORMS, Form, advantage_by_record, register, require_match, right_by_group, solve
from dprisk.exact.optimum import Optimum
from dprisk.exact.theorem import TIE, beliefs, beliefs_by_law, block_size, enumerate_outputs, enumerate_success

__all__ = [
    "FORMS",
    "TIE",
    "Form",
    "Optimum",
    "advantage_by_record",
    "beliefs",
    "beliefs_by_law",
    "block_size",
    "enumerate_outputs",
    "enumerate_success",
    "register",
    "require_match",
    "right_by_group",
    "solve",
]
