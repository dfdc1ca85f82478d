"""Public data sets, read from a folder that holds their files as published: one function a data set.

Nothing is downloaded, and no data come with dprisk.
"""

from dprisk.datasets.census_income import adult
from dprisk.datasets.coded import CodedTable
from dprisk.datasets.images import fashion_mnist, mnist
from dprisk.datasets.marginal_tables import acs16, sf_fire

__all__ = ["CodedTable", "acs16", "adult", "fashion_mnist", "mnist", "sf_fire"]
