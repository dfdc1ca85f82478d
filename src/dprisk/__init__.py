"""What a differentially private release really risks, how much noise it really needs, whether code keeps its promise.

>>> from dprisk import GRR, Prior, Threat, assess
>>> print(assess(GRR(100, epsilon=2.0), Threat(Prior.uniform(100))).sentence())
Of 1000 people like this one, an attacker guesses 69 right after seeing the report, 10 without it; taking part adds 59.
"""

from dprisk.assess import GroupRisk, Risk, assess
from dprisk.attacks import OptimalAttack
from dprisk.calibrate import Calibration, calibrate
from dprisk.errors import DpriskError
from dprisk.knowledge import Knowledge
from dprisk.mechanisms import (
    BLH,
    GRR,
    OLH,
    OUE,
    SUE,
    Exponential,
    Gaussian,
    Geometric,
    Laplace,
    LocalHashing,
    Matrix,
    Mechanism,
    OnAttribute,
    PostProcessed,
    Product,
    Repeated,
    SubsetSelection,
    UnaryEncoding,
)
from dprisk.prior import Prior
from dprisk.success import Attributes, Balls, Distances, Exact, Graph, Line, Ring, Success
from dprisk.threat import Threat

__version__ = "0.1.0"

__all__ = [
    "BLH",
    "GRR",
    "OLH",
    "OUE",
    "SUE",
    "Attributes",
    "Balls",
    "Calibration",
    "Distances",
    "DpriskError",
    "Exact",
    "Exponential",
    "Gaussian",
    "Geometric",
    "Graph",
    "GroupRisk",
    "Knowledge",
    "Laplace",
    "Line",
    "LocalHashing",
    "Matrix",
    "Mechanism",
    "OnAttribute",
    "OptimalAttack",
    "PostProcessed",
    "Prior",
    "Product",
    "Repeated",
    "Ring",
    "Risk",
    "SubsetSelection",
    "Success",
    "Threat",
    "UnaryEncoding",
    "assess",
    "calibrate",
]
