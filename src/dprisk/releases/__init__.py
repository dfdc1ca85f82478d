"""Queries to a table as channels: what a noisy answer tells of one person, everybody else's records fixed."""

from dprisk.releases.queries import Count, Histogram, Marginal, Mean, Query, Sum
from dprisk.releases.releasing import release

__all__ = ["Count", "Histogram", "Marginal", "Mean", "Query", "Sum", "release"]
