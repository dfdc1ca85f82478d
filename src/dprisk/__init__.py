"""What a differentially private release really risks, and how much noise it really needs.

>>> from dprisk import GRR, Prior, Threat, assess
>>> print(assess(GRR(100, epsilon=2.0), Threat(Prior.uniform(100))).sentence())
Of 1000 people like this one, an attacker guesses 69 right after seeing the report, 10 without it; taking part adds 59.
"""

from dprisk.assess import Assessment, GroupRisk, IntervalRisk, IntervalThreat, Risk, WorstCase, assess
from dprisk.attacks import OptimalAttack, SimplifiedAttack
from dprisk.audit.outputs import recorded
from dprisk.audit.report import AuditReport
from dprisk.audit.run import AuditInterrupted, audit, audit_recorded
from dprisk.audit.targets import central
from dprisk.calibrate import DPSGD, Calibration, calibrate
from dprisk.density import Density
from dprisk.errors import DpriskError
from dprisk.guarantees import (
    ZCDP,
    ApproxDP,
    GaussianDP,
    Guarantee,
    PrivacyLoss,
    PureDP,
    RenyiDP,
    TradeOff,
    dp_sgd,
    from_dp_event,
    from_opacus,
    from_opendp,
)
from dprisk.knowledge import Knowledge
from dprisk.mechanisms import (
    BLH,
    GRR,
    OLH,
    OUE,
    SHE,
    SUE,
    THE,
    Additive,
    ConcreteHashing,
    DensityNoise,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    GaussianNoise,
    Geometric,
    Laplace,
    LaplaceNoise,
    LocalHashing,
    Matrix,
    Mechanism,
    OnAttribute,
    OnInterval,
    PostProcessed,
    Product,
    Repeated,
    SubsetSelection,
    UnaryEncoding,
    VectorGaussian,
    VectorLaplace,
)
from dprisk.prior import Prior
from dprisk.releases import release
from dprisk.releases.queries import Count, Histogram, Marginal, Mean, Query, Sum
from dprisk.success import Attributes, Balls, Distances, Exact, Graph, Line, Ring, Success
from dprisk.threat import Threat

__version__ = "0.1.0"

__all__ = [
    "BLH",
    "DPSGD",
    "GRR",
    "OLH",
    "OUE",
    "SHE",
    "SUE",
    "THE",
    "ZCDP",
    "Additive",
    "ApproxDP",
    "Assessment",
    "Attributes",
    "AuditInterrupted",
    "AuditReport",
    "Balls",
    "Calibration",
    "ConcreteHashing",
    "Count",
    "Density",
    "DensityNoise",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Distances",
    "DpriskError",
    "Exact",
    "Exponential",
    "Gaussian",
    "GaussianDP",
    "GaussianNoise",
    "Geometric",
    "Graph",
    "GroupRisk",
    "Guarantee",
    "Histogram",
    "IntervalRisk",
    "IntervalThreat",
    "Knowledge",
    "Laplace",
    "LaplaceNoise",
    "Line",
    "LocalHashing",
    "Marginal",
    "Matrix",
    "Mean",
    "Mechanism",
    "OnAttribute",
    "OnInterval",
    "OptimalAttack",
    "PostProcessed",
    "Prior",
    "PrivacyLoss",
    "Product",
    "PureDP",
    "Query",
    "RenyiDP",
    "Repeated",
    "Ring",
    "Risk",
    "SimplifiedAttack",
    "SubsetSelection",
    "Success",
    "Sum",
    "Threat",
    "TradeOff",
    "UnaryEncoding",
    "VectorGaussian",
    "VectorLaplace",
    "WorstCase",
    "assess",
    "audit",
    "audit_recorded",
    "calibrate",
    "central",
    "dp_sgd",
    "from_dp_event",
    "from_opacus",
    "from_opendp",
    "recorded",
    "release",
]
