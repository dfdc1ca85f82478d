"""Many situations at once: the risk over a parameter, over distances, over priors, of several subjects side by side."""

from dprisk.sweeps.point import Point
from dprisk.sweeps.ranges import numbers_in
from dprisk.sweeps.sweeping import SweepInterrupted, sweep
from dprisk.sweeps.table import Sweep

__all__ = ["Point", "Sweep", "SweepInterrupted", "numbers_in", "sweep"]
