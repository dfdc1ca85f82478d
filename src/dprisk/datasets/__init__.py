"""Public data sets, read from a folder that holds their files as published: one function a data set.

Nothing is downloaded, and no data come with dprisk.
"""

from dprisk.datasets.census_income import adult
from dprisk.datasets.census_people import census, census19, census_2019
from dprisk.datasets.coded import CodedTable
from dprisk.datasets.hospital_patients import hospital, texas_100x
from dprisk.datasets.images import fashion_mnist, mnist
from dprisk.datasets.labelled import LabelledTable
from dprisk.datasets.marginal_tables import acs16, sf_fire

__all__ = [
    "CodedTable",
    "LabelledTable",
    "acs16",
    "adult",
    "census",
    "census19",
    "census_2019",
    "fashion_mnist",
    "hospital",
    "mnist",
    "sf_fire",
    "texas_100x",
]
