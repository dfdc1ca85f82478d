"""The attacker: what it believes, what it knows, what it wants."""

from dprisk.threat.density import Density
from dprisk.threat.knowledge import Knowledge
from dprisk.threat.prior import Prior
from dprisk.threat.success import Attributes, Balls, Distances, Exact, Graph, Line, Ring, Success
from dprisk.threat.threat import Threat

__all__ = [
    "Attributes",
    "Balls",
    "Density",
    "Distances",
    "Exact",
    "Graph",
    "Knowledge",
    "Line",
    "Prior",
    "Ring",
    "Success",
    "Threat",
]
