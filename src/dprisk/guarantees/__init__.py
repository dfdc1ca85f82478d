"""Privacy notions and accountants, each as a trade-off curve with its total variation, epsilon and delta."""

from dprisk.guarantees.accounting import DPSGD, as_guarantee, dp_sgd, from_dp_event, from_opacus, from_opendp
from dprisk.guarantees.base import Guarantee
from dprisk.guarantees.notions import ZCDP, ApproxDP, GaussianDP, PureDP, RenyiDP
from dprisk.guarantees.profiles import PrivacyLoss, TradeOff

__all__ = [
    "DPSGD",
    "ZCDP",
    "ApproxDP",
    "GaussianDP",
    "Guarantee",
    "PrivacyLoss",
    "PureDP",
    "RenyiDP",
    "TradeOff",
    "as_guarantee",
    "dp_sgd",
    "from_dp_event",
    "from_opacus",
    "from_opendp",
]
