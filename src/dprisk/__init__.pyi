from .assessment import Risk, WorstCase, assess
from .auditing import AuditInterrupted, AuditReport, audit, audit_recorded, central
from .calibration import Calibration, calibrate
from .errors import DpriskError
from .guarantees import DPSGD, ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP, dp_sgd
from .mechanisms import (
    GRR,
    OLH,
    OUE,
    SUE,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    Matrix,
    Mechanism,
    SubsetSelection,
)
from .releases import release
from .surveys import Survey
from .sweeps import Sweep, sweep
from .threat import Attributes, Density, Knowledge, Line, Prior, Ring, Threat

__version__: str
__all__ = [
    "DPSGD",
    "GRR",
    "OLH",
    "OUE",
    "SUE",
    "ZCDP",
    "ApproxDP",
    "Attributes",
    "AuditInterrupted",
    "AuditReport",
    "Calibration",
    "Density",
    "DiscreteLaplace",
    "DpriskError",
    "Exponential",
    "Gaussian",
    "GaussianDP",
    "Guarantee",
    "Knowledge",
    "Laplace",
    "Line",
    "Matrix",
    "Mechanism",
    "Prior",
    "PureDP",
    "Ring",
    "Risk",
    "SubsetSelection",
    "Survey",
    "Sweep",
    "Threat",
    "WorstCase",
    "assess",
    "audit",
    "audit_recorded",
    "calibrate",
    "central",
    "dp_sgd",
    "release",
    "sweep",
]
