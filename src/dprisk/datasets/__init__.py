"""Public data sets, read from a folder that holds their files as published: one function a data set.

Nothing is downloaded, and no data come with dprisk.
"""

from dprisk.datasets.census_income import adult
from dprisk.datasets.images import fashion_mnist, mnist

__all__ = ["adult", "fashion_mnist", "mnist"]
