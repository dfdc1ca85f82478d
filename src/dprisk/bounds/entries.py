"""The list of bounds, as data: on the advantage, on the success, on a match among many people."""

from dprisk.bounds import ours, papers, programs
from dprisk.bounds.bound import EXACT, FEW, MANY, UNIFORM, UNINFORMED, VERY_FEW, Bound
from dprisk.guarantees import Guarantee
from dprisk.mechanisms import Mechanism
from dprisk.threat.success import Exact, Ring
from dprisk.threat.threat import Threat


def _is_pure(guarantee: Guarantee, threat: Threat) -> bool:
    """Whether the guarantee says epsilon-DP and nothing more, so that the worst epsilon-DP mechanism has it."""
    pairs = guarantee.pairs
    return len(pairs) == 1 and pairs[0][1] == 0


def _is_pair(guarantee: Guarantee, threat: Threat) -> bool:
    """Whether the guarantee says (epsilon, delta)-DP and nothing more."""
    return len(guarantee.pairs) == 1


def _exchangeable(guarantee: Guarantee, threat: Threat) -> bool:
    """Pure DP, a uniform prior, and categories or a ring: a group acts transitively (theory, 3.4 c)."""
    around = isinstance(threat.success, Ring) and threat.success.positions is None
    same = isinstance(threat.success, Exact) or around
    return _is_pure(guarantee, threat) and same and threat.prior.is_uniform


def _reveal_or_respond(guarantee: Guarantee, threat: Threat) -> Mechanism:
    """What attains Corollary 5.6 (uniform prior), for every delta; it attains the largest success too."""
    return ours.worst_top_records(*guarantee.pairs[0], threat.prior).mechanism()


def _kappa(threat: Threat) -> float:
    return threat.prior.collision_probability


ENTRIES = (
    Bound(
        "variation",
        "RAD Theorem 4.2; thesis Theorems 6, 9",
        "TV (1 - kappa_pi)",
        "any",
        lambda guarantee, threat: papers.rad_theorem_4_2(guarantee.total_variation, _kappa(threat)),
        attained="by randomised response, among mechanisms of its total variation",
    ),
    Bound(
        "variation-of-pair",
        "RAD Theorem 4.2",
        "(e^eps - 1 + 2 delta)/(e^eps + 1) (1 - kappa_pi)",
        "pair",
        lambda epsilon, delta, threat: papers.rad_theorem_4_2(papers.largest_variation(epsilon, delta), _kappa(threat)),
        attained="for two records",
        is_attained=lambda guarantee, threat: (
            threat.prior.support_size == 2 and threat.success.is_exact and _is_pair(guarantee, threat)
        ),
    ),
    Bound(
        "curve-between-baselines",
        "RAD Theorem 5.1, first statement",
        "max 1 - f(a) - a, kappa- <= a <= kappa+",
        "any",
        lambda guarantee, threat: papers.rad_theorem_5_1_first(guarantee, threat.kappa_minus, threat.kappa_plus),
        only=UNINFORMED,
    ),
    Bound(
        "curve-discrete",
        "RAD Theorem 5.1, second statement",
        "(1 - kappa_pi) max 1 - f(a) - a, a <= kappa+/(1 - kappa_pi)",
        "any",
        lambda guarantee, threat: papers.rad_theorem_5_1_second(guarantee, _kappa(threat), threat.kappa_plus),
        only=UNINFORMED,
    ),
    Bound(
        "three-of-pair",
        "RAD Proposition 5.3",
        "the least of three bounds by epsilon, delta, kappa",
        "pair",
        lambda epsilon, delta, threat: papers.rad_proposition_5_3(
            epsilon, delta, _kappa(threat), threat.kappa_minus, threat.kappa_plus
        ),
        only=UNINFORMED,
    ),
    Bound(
        "knapsack",
        "RAD Theorem 5.5",
        "records filled heaviest first up to Lemma 5.4",
        "pair",
        lambda epsilon, delta, threat: papers.rad_theorem_5_5(epsilon, delta, threat.prior.sorted_weights),
        only=EXACT,
    ),
    Bound(
        "uniform-categories",
        "RAD Corollary 5.6; thesis Corollary 1",
        "(e^eps - 1 + delta m)/(e^eps + m - 1) (m - 1)/m",
        "pair",
        lambda epsilon, delta, threat: papers.rad_corollary_5_6(epsilon, delta, threat.prior.support_size),
        only=UNIFORM,
        attained="for every delta, by revealing with delta, else randomised response",
        is_attained=_is_pair,
        worst=_reveal_or_respond,
    ),
    Bound(
        "heaviest-pairs",
        "thesis Theorem 7, corrected",
        "pairs of records filled heaviest first",
        "pair",
        lambda epsilon, delta, threat: papers.thesis_theorem_7(epsilon, delta, threat.prior.sorted_weights),
        only=EXACT,
        most_records=MANY,
    ),
    Bound(
        "heaviest-pairs-of-curve",
        "thesis Theorem 8, corrected",
        "the same with the trade-off curve",
        "any",
        lambda guarantee, threat: papers.thesis_theorem_8(guarantee, threat.prior.sorted_weights),
        only=EXACT,
        most_records=MANY,
    ),
    Bound(
        "uniform-curve",
        "thesis Corollary 2",
        "(m - 1)/m max 1 - f(a) - a over the mean wrong guess",
        "any",
        lambda guarantee, threat: papers.thesis_corollary_2(guarantee, threat.prior.support_size),
        only=UNIFORM,
    ),
    Bound(
        "wpes-any-error",
        "WPES'24 Theorem 7.2",
        "min(kappa+ (e^eps - 1), tanh(eps/2))",
        "pure",
        lambda epsilon, threat: papers.wpes_theorem_7_2(epsilon, threat.kappa_plus),
        only=UNINFORMED,
    ),
    Bound(
        "wpes-exact",
        "WPES'24 Theorem 7.3, corrected",
        "min(kappa+ (e^eps - 1), kappa+ (m - 1) tanh(eps/2) + kappa+ - kappa-)",
        "pure",
        lambda epsilon, threat: papers.wpes_theorem_7_3(
            epsilon, threat.prior.support_size, float(threat.prior.sorted_weights[-1]), threat.kappa_plus
        ),
        only=EXACT,
    ),
    Bound(
        "worst-blocks",
        "dprisk, theory 3.2",
        "max_k (E-1)/(E+k-1) [sum_{i<k} pi_i(1-pi_i) + pi_k sum_{i<k} pi_i]",
        "pure",
        lambda epsilon, threat: ours.worst_blocks(epsilon, threat.prior).advantage,
        only=EXACT,
        attained="by randomised response on k blocks",
        is_attained=_is_pure,
        worst=lambda guarantee, threat: ours.worst_blocks(guarantee.epsilon_at(0.0), threat.prior).mechanism(),
    ),
    Bound(
        "sets",
        "dprisk, theory 3.4 c",
        "max_g h(pi(S_g)) plus a delta term",
        "pair",
        lambda epsilon, delta, threat: ours.set_advantage(epsilon, delta, _kappa(threat), threat.ball_masses),
        only=UNINFORMED,
        attained="at delta = 0 for uniform categories and rings",
        is_attained=_exchangeable,
    ),
    Bound(
        "knowledge",
        "dprisk, theory 3.4",
        "h(min(kappa_aux, 1/(1 + e^(eps/2)))) plus a delta term",
        "pair",
        lambda epsilon, delta, threat: ours.knowledge_advantage(epsilon, delta, _kappa(threat), threat.kappa_aux),
    ),
    Bound(
        "universal",
        "dprisk, theory 3.4 a",
        "tanh(eps/4) plus a delta term",
        "pair",
        lambda epsilon, delta, threat: ours.universal_advantage(epsilon, delta, _kappa(threat)),
    ),
    Bound(
        "curve-of-knowledge",
        "dprisk, theory 3.4",
        "max 1 - f(a) - a, a <= kappa_aux",
        "any",
        lambda guarantee, threat: ours.curve_advantage(guarantee, threat.kappa_aux),
    ),
    Bound(
        "fixed-point",
        "dprisk, theory 3.6",
        "(m - 1)(1/m - a), f(a) = (m - 1) a",
        "any",
        lambda guarantee, threat: ours.fixed_point_advantage(guarantee, threat.prior.support_size),
        only=UNIFORM,
        attained="where it equals Corollary 5.6",
        is_attained=_is_pair,
    ),
    Bound(
        "curve-program",
        "dprisk, theory 3.6, any prior",
        "a convex program over the trade-off curve",
        "any",
        lambda guarantee, threat: programs.advantage_by_curve(guarantee, threat).value,
        only=EXACT,
        most_records=FEW,
    ),
    Bound(
        "worst-mechanism",
        "dprisk, theory 3.1",
        "the compact dual: the worst epsilon-DP mechanism",
        "pure",
        lambda epsilon, threat: programs.worst_advantage(epsilon, threat),
        most_records=FEW,
        attained="always, up to the solver's tolerance",
        is_attained=_is_pure,
    ),
    Bound(
        "worst-mechanism-delta",
        "dprisk, theory 3.1 with delta",
        "the worst (epsilon, delta)-DP mechanism as a linear program",
        "one pair",
        lambda epsilon, delta, threat: programs.worst_with_delta(epsilon, delta, threat, "advantage"),
        most_records=VERY_FEW,
        attained="always, up to the solver's tolerance",
        is_attained=_is_pair,
    ),
    Bound(
        "ratio",
        "Balle et al. 2022; with knowledge theory 3.4",
        "kappa_aux e^eps",
        "pure",
        lambda epsilon, threat: papers.balle_success(epsilon, threat.kappa_aux),
        bounds="success",
    ),
    Bound(
        "wpes-success",
        "WPES'24 Proposition 5.1",
        "kappa+ min(e^eps, 1 + (m - 1) tanh(eps/2))",
        "pure",
        lambda epsilon, threat: papers.wpes_proposition_5_1(epsilon, threat.prior.support_size, threat.kappa_plus),
        only=EXACT,
        bounds="success",
    ),
    Bound(
        "curve-at-baseline",
        "Hayes et al. 2023; with knowledge theory 3.4",
        "1 - f(kappa_aux)",
        "any",
        lambda guarantee, threat: papers.hayes_success(guarantee, threat.kappa_aux),
        bounds="success",
    ),
    Bound(
        "posterior",
        "Swanberg et al. Theorem 3.2; with knowledge and delta theory 3.4",
        "beta(kappa_aux) + delta",
        "pair",
        lambda epsilon, delta, threat: papers.bayes_factor_success(epsilon, threat.kappa_aux, delta),
        bounds="success",
        attained="for uniform categories and delta = 0",
        is_attained=lambda guarantee, threat: threat.knows.is_none and _exchangeable(guarantee, threat),
    ),
    Bound(
        "worst-top-records",
        "dprisk, theory 3.3",
        "delta + (1 - delta) max_k E/(E+k-1) (sum of the k largest pi)",
        "pair",
        lambda epsilon, delta, threat: ours.worst_top_records(epsilon, delta, threat.prior).success,
        only=EXACT,
        bounds="success",
        attained="by revealing with delta, else randomised response on the top k",
        is_attained=_is_pair,
        worst=_reveal_or_respond,
    ),
    Bound(
        "curve-program-success",
        "dprisk, theory 3.6, any prior",
        "a convex program over the trade-off curve",
        "any",
        lambda guarantee, threat: programs.success_by_curve(guarantee, threat).value,
        only=EXACT,
        bounds="success",
        most_records=FEW,
    ),
    Bound(
        "worst-mechanism-success",
        "dprisk, theory 3.1",
        "the compact dual: the worst epsilon-DP mechanism",
        "pure",
        lambda epsilon, threat: programs.worst_success(epsilon, threat),
        bounds="success",
        most_records=FEW,
        attained="always, up to the solver's tolerance",
        is_attained=_is_pure,
    ),
    Bound(
        "worst-mechanism-delta-success",
        "dprisk, theory 3.1 with delta",
        "the worst (epsilon, delta)-DP mechanism as a linear program",
        "one pair",
        lambda epsilon, delta, threat: programs.worst_with_delta(epsilon, delta, threat, "success"),
        bounds="success",
        most_records=VERY_FEW,
        attained="always, up to the solver's tolerance",
        is_attained=_is_pair,
    ),
    Bound(
        "attaxonomy-best-case",
        "Attaxonomy Corollary 4.7",
        "n kappa e^eps",
        "pure",
        lambda epsilon, threat, people: papers.attaxonomy_best_case(epsilon, threat.kappa_plus, people),
        only=UNINFORMED,
        bounds="match among many",
    ),
    Bound(
        "best-case",
        "dprisk, theory 3.7; Swanberg et al. Theorem 3.2",
        "1 - (1 - beta(kappa))^n",
        "pure",
        lambda epsilon, threat, people: papers.best_case(epsilon, threat.kappa_plus, people),
        only=UNINFORMED,
        bounds="match among many",
    ),
    Bound(
        "attaxonomy-average",
        "Attaxonomy Corollary 4.11",
        "kappa e^eps",
        "pure",
        lambda epsilon, threat, people: papers.attaxonomy_average(epsilon, threat.kappa_plus),
        only=UNINFORMED,
        bounds="match of a random one",
    ),
    Bound(
        "average-case",
        "dprisk, theory 3.7; Swanberg et al. Theorem 3.2",
        "beta(kappa)",
        "pure",
        lambda epsilon, threat, people: papers.average_case(epsilon, threat.kappa_plus),
        only=UNINFORMED,
        bounds="match of a random one",
    ),
)
