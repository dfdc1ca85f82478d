"""Pictures of numbers: curves that are labelled where they end, and bars. matplotlib is imported when one is drawn."""

from dprisk.pictures.drawing import draw, ready, svg, write
from dprisk.pictures.picture import Bar, Bars, Curve, Curves, Panel

__all__ = ["Bar", "Bars", "Curve", "Curves", "Panel", "draw", "ready", "svg", "write"]
