"""Where bounds are attained, and by what."""

from dprisk.bounds import ours
from dprisk.guarantees import Guarantee
from dprisk.mechanisms import Mechanism
from dprisk.threat.success import Exact, Ring
from dprisk.threat.threat import Threat


def is_pure(guarantee: Guarantee, threat: Threat) -> bool:
    """Whether the guarantee says epsilon-DP and nothing more, so that the worst epsilon-DP mechanism has it."""
    pairs = guarantee.pairs
    return len(pairs) == 1 and pairs[0][1] == 0


def is_pair(guarantee: Guarantee, threat: Threat) -> bool:
    """Whether the guarantee says (epsilon, delta)-DP and nothing more."""
    return len(guarantee.pairs) == 1


def exchangeable(guarantee: Guarantee, threat: Threat) -> bool:
    """Pure DP, a uniform prior, and categories or a ring: a group acts transitively (theory, 3.4 c)."""
    around = isinstance(threat.success, Ring) and threat.success.positions is None
    same = isinstance(threat.success, Exact) or around
    return is_pure(guarantee, threat) and same and threat.prior.is_uniform


def reveal_or_respond(guarantee: Guarantee, threat: Threat) -> Mechanism:
    """What attains Corollary 5.6 (uniform prior), for every delta; it attains the largest success too."""
    return ours.worst_top_records(*guarantee.pairs[0], threat.prior).mechanism()
