"""Likelihood and impact as a level of risk, in the manner of NIST SP 800-30 revision 1.

The levels of a likelihood in percent are those of its Tables G-2 to G-4, the combination is Table I-2.
"""

from __future__ import annotations

import math

from dprisk.taxonomy.keys import LEVELS

PERCENT = (4, 20, 79, 95, 100)  # the most that each level takes
_TABLE_I_2 = {
    "very high": ("very low", "low", "moderate", "high", "very high"),
    "high": ("very low", "low", "moderate", "high", "very high"),
    "moderate": ("very low", "low", "moderate", "moderate", "high"),
    "low": ("very low", "low", "low", "low", "moderate"),
    "very low": ("very low", "very low", "very low", "low", "low"),
}


def likelihood(share: float) -> str:
    """The level of a chance; a share of a percent counts as a whole one.

    >>> [likelihood(share) for share in (0.0, 0.04, 0.041, 0.497, 0.986)]
    ['very low', 'very low', 'low', 'moderate', 'very high']
    """
    percent = math.ceil(100 * min(1.0, share) - 1e-9)
    return next(level for level, most in zip(LEVELS, PERCENT, strict=True) if percent <= most)


def risk_level(likely: str, impact: str) -> str:
    """The level of risk.

    >>> risk_level("moderate", "very high")
    'high'
    """
    return _TABLE_I_2[likely][LEVELS.index(impact)]
