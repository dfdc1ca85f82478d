"""Channels known in full, one family a file, and the names the command knows them by."""

from dprisk.mechanisms.base import Mechanism
from dprisk.mechanisms.combined import OnAttribute, PostProcessed, Product, Repeated
from dprisk.mechanisms.exponential import Exponential
from dprisk.mechanisms.local.hashing import ConcreteHashing
from dprisk.mechanisms.local.histogram import SHE, THE
from dprisk.mechanisms.local.sets import (
    BLH,
    GRR,
    OLH,
    OUE,
    SUE,
    LocalHashing,
    SetProtocol,
    SubsetSelection,
    UnaryEncoding,
)
from dprisk.mechanisms.numbers.additive import Additive, Gaussian, Laplace
from dprisk.mechanisms.numbers.discrete import DiscreteGaussian, DiscreteLaplace
from dprisk.mechanisms.numbers.geometric import Geometric
from dprisk.mechanisms.numbers.interval import OnInterval
from dprisk.mechanisms.numbers.noise import DensityNoise, GaussianNoise, LaplaceNoise
from dprisk.mechanisms.tabled import Matrix, Tabled
from dprisk.mechanisms.vectors import VectorGaussian, VectorLaplace

__all__ = [
    "BLH",
    "GRR",
    "OLH",
    "OUE",
    "SHE",
    "SUE",
    "THE",
    "Additive",
    "ConcreteHashing",
    "DensityNoise",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "Gaussian",
    "GaussianNoise",
    "Geometric",
    "Laplace",
    "LaplaceNoise",
    "LocalHashing",
    "Matrix",
    "Mechanism",
    "OnAttribute",
    "OnInterval",
    "PostProcessed",
    "Product",
    "Repeated",
    "SetProtocol",
    "SubsetSelection",
    "Tabled",
    "UnaryEncoding",
    "VectorGaussian",
    "VectorLaplace",
]
