"""Channels known in full, one family a file."""

from dprisk.mechanisms.base import Mechanism, Repeated
from dprisk.mechanisms.combined import OnAttribute, PostProcessed, Product
from dprisk.mechanisms.exponential import Exponential, SpacedExponential
from dprisk.mechanisms.local.hashing import BLH, OLH, ConcreteHashing, LocalHashing
from dprisk.mechanisms.local.histogram import SHE, THE
from dprisk.mechanisms.local.sets import GRR, SetProtocol, SubsetSelection
from dprisk.mechanisms.local.unary import OUE, SUE, UnaryEncoding
from dprisk.mechanisms.numbers.additive import Additive, Gaussian, Laplace
from dprisk.mechanisms.numbers.interval import OnInterval
from dprisk.mechanisms.numbers.noise import DensityNoise, GaussianNoise, LaplaceNoise
from dprisk.mechanisms.numbers.whole import DiscreteGaussian, DiscreteLaplace, Geometric
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
    "SpacedExponential",
    "SubsetSelection",
    "Tabled",
    "UnaryEncoding",
    "VectorGaussian",
    "VectorLaplace",
]
