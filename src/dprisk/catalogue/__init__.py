"""Every name that people type, as data: the command, files, help texts and pages read it from here.

>>> MECHANISMS["randomised response"].make({"epsilon": 2.0}, 100)
GRR(size=100, epsilon=2)
>>> GUARANTEES["(eps, delta)"].title
'Approximate differential privacy'

A register is open. `MECHANISMS.register(Entry("toy", "A toy", "For tests.", Toy, (OPTIONS["epsilon"],)))` makes a new
mechanism known wherever mechanisms are named.
"""

from dprisk.catalogue.entries import GUARANTEES, MECHANISMS, NOISES, PRIORS, QUERIES, REGISTERS, SUCCESS
from dprisk.catalogue.options import OPTIONS
from dprisk.catalogue.register import Catalogue, Entry, Option

__all__ = [
    "GUARANTEES",
    "MECHANISMS",
    "NOISES",
    "OPTIONS",
    "PRIORS",
    "QUERIES",
    "REGISTERS",
    "SUCCESS",
    "Catalogue",
    "Entry",
    "Option",
]
