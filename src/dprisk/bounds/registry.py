"""The register of bounds: what each needs, what it bounds, who proved it, where it is attained.

`evaluate` tries them all against a guarantee and a threat and says why those that do not apply do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from dprisk.bounds import ours, papers, programs
from dprisk.errors import TooLargeError
from dprisk.guarantees import Guarantee
from dprisk.mechanisms import Mechanism
from dprisk.threat.threat import Threat

Bounded = Literal["advantage", "success", "match among many", "match of a random one"]
Notion = Literal["any", "pair", "one pair", "pure"]
NOTIONS: dict[Notion, str] = {
    "any": "any guarantee",
    "pair": "an epsilon and delta",
    "one pair": "one epsilon and delta",
    "pure": "pure DP",
}
FEW = 60  # records up to which optimisation problems are solved without being asked for
VERY_FEW = 15  # the same where every pair of records counts
MANY = 300  # records up to which all pairs of them are listed without being asked for


@dataclass(frozen=True)
class Bound:
    """One result.

    `notion` is what it reads off the guarantee: its curve ("any"), a pair epsilon, delta ("pair": every pair that the
    guarantee implies is tried; "one pair": only if it is one), or its epsilon at delta 0 ("pure"). `formula` takes the
    guarantee, or epsilon and delta, or epsilon, and the threat (and, for matches among many, how many people).
    """

    name: str
    bounds: Bounded
    source: str
    statement: str
    notion: Notion
    formula: Callable[..., float | programs.Certified]
    knows_nothing: bool = False
    exact_success: bool = False
    uniform_prior: bool = False
    most_records: float = math.inf
    attained: str = ""
    is_attained: Callable[[Guarantee, Threat], bool] = lambda guarantee, threat: False
    worst: Callable[[Guarantee, Threat], Mechanism] | None = None

    def obstacle(self, guarantee: Guarantee, threat: Threat, thorough: bool = False) -> str | None:
        """Why the bound does not apply, in a sentence; None if it does."""
        if self.knows_nothing and not threat.knows.is_none:
            return f"needs an attacker without auxiliary knowledge; this one knows {threat.knows.describe()}"
        if self.exact_success and not threat.success.is_exact:
            return "needs exact reconstruction; here a near guess counts as right"
        if self.uniform_prior and not threat.prior.is_uniform_on_support:
            return "needs a uniform prior"
        if self.notion == "pure" and math.isinf(guarantee.epsilon_at(0.0)):
            return "needs pure DP; this guarantee has no epsilon at delta 0"
        if self.notion == "one pair" and len(guarantee.pairs) > 1:
            return "needs a single epsilon and delta"
        if threat.prior.support_size > self.most_records and not thorough:
            return f"is computed for up to {self.most_records:g} records unless asked for (thorough=True)"
        return None

    def needs(self) -> str:
        """What it needs, in a few words."""
        parts = [
            NOTIONS[self.notion],
            "nothing known" if self.knows_nothing else "",
            "exact success" if self.exact_success else "",
            "uniform prior" if self.uniform_prior else "",
        ]
        return ", ".join(part for part in parts if part)

    def to_dict(self) -> dict[str, str]:
        """What there is to know about the bound, ready for JSON."""
        return {
            "name": self.name,
            "bounds": self.bounds,
            "statement": self.statement,
            "needs": self.needs(),
            "source": self.source,
            "attained": self.attained,
        }

    def value(self, guarantee: Guarantee, threat: Threat, *people: int) -> Value:
        """The bound evaluated, as its formula gives it."""
        if self.notion == "any":
            found = [self.formula(guarantee, threat)]
        elif self.notion == "pure":
            found = [self.formula(guarantee.epsilon_at(0.0), threat, *people)]
        else:
            found = [self.formula(epsilon, delta, threat) for epsilon, delta in guarantee.pairs]
        numbers = [one.value if isinstance(one, programs.Certified) else one for one in found]
        proven = all(one.is_tight for one in found if isinstance(one, programs.Certified))
        return Value(self, min(numbers), proven and self.is_attained(guarantee, threat))


@dataclass(frozen=True)
class Value:
    """A bound evaluated: its number, and whether some mechanism with this guarantee attains it."""

    bound: Bound
    number: float
    attained: bool

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; a vacuous infinite number becomes None."""
        return {
            "name": self.bound.name,
            "bounds": self.bound.bounds,
            "value": self.number if math.isfinite(self.number) else None,
            "source": self.bound.source,
            "attained": self.attained,
        }


@dataclass(frozen=True)
class Evaluation:
    """The bounds that apply, tightest first, and for each of the others the reason why it does not."""

    values: tuple[Value, ...]
    obstacles: dict[str, str]


def evaluate(
    guarantee: Guarantee, threat: Threat, which: Bounded, thorough: bool = False, people: int | None = None
) -> Evaluation:
    """Try every bound on the advantage, on the success, or on a match among `people`."""
    guarantee.require_replace_one()
    values, obstacles = [], {}
    for bound in (bound for bound in REGISTRY if bound.bounds == which):
        obstacle = bound.obstacle(guarantee, threat, thorough)
        if obstacle is None:
            try:
                values.append(bound.value(guarantee, threat, *([] if people is None else [people])))
            except TooLargeError as problem:
                obstacle = str(problem)
        if obstacle is not None:
            obstacles[bound.name] = obstacle
    # Of equal bounds the one that is known to be attained tells most.
    order = sorted(values, key=lambda value: (float(f"{value.number:.9e}"), not value.attained))
    return Evaluation(tuple(order), obstacles)


def _is_pure(guarantee: Guarantee, threat: Threat) -> bool:
    """Whether the guarantee says epsilon-DP and nothing more, so that the worst epsilon-DP mechanism has it."""
    pairs = guarantee.pairs
    return len(pairs) == 1 and pairs[0][1] == 0


def _is_pair(guarantee: Guarantee, threat: Threat) -> bool:
    return len(guarantee.pairs) == 1


def _exchangeable(guarantee: Guarantee, threat: Threat) -> bool:
    """Pure DP, a uniform prior, and categories or a ring: a group acts transitively (theory, 3.4 c)."""
    from dprisk.threat.success import Exact, Ring

    around = isinstance(threat.success, Ring) and threat.success.positions is None
    same = isinstance(threat.success, Exact) or around
    return _is_pure(guarantee, threat) and same and threat.prior.is_uniform


def _reveal_or_respond(guarantee: Guarantee, threat: Threat) -> Mechanism:
    """What attains Corollary 5.6 (uniform prior), for every delta; it attains the largest success too."""
    return ours.worst_top_records(*guarantee.pairs[0], threat.prior).mechanism()


def _kappa(threat: Threat) -> float:
    return threat.prior.collision_probability


REGISTRY: tuple[Bound, ...] = (
    Bound(
        "variation",
        "advantage",
        "RAD Theorem 4.2; thesis Theorems 6, 9",
        "TV (1 - kappa_pi)",
        "any",
        lambda guarantee, threat: papers.rad_theorem_4_2(guarantee.total_variation, _kappa(threat)),
        attained="by randomised response, among mechanisms of its total variation",
    ),
    Bound(
        "variation-of-pair",
        "advantage",
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
        "advantage",
        "RAD Theorem 5.1, first statement",
        "max 1 - f(a) - a, kappa- <= a <= kappa+",
        "any",
        lambda guarantee, threat: papers.rad_theorem_5_1_first(guarantee, threat.kappa_minus, threat.kappa_plus),
        knows_nothing=True,
    ),
    Bound(
        "curve-discrete",
        "advantage",
        "RAD Theorem 5.1, second statement",
        "(1 - kappa_pi) max 1 - f(a) - a, a <= kappa+/(1 - kappa_pi)",
        "any",
        lambda guarantee, threat: papers.rad_theorem_5_1_second(guarantee, _kappa(threat), threat.kappa_plus),
        knows_nothing=True,
    ),
    Bound(
        "three-of-pair",
        "advantage",
        "RAD Proposition 5.3",
        "the least of three bounds by epsilon, delta, kappa",
        "pair",
        lambda epsilon, delta, threat: papers.rad_proposition_5_3(
            epsilon, delta, _kappa(threat), threat.kappa_minus, threat.kappa_plus
        ),
        knows_nothing=True,
    ),
    Bound(
        "knapsack",
        "advantage",
        "RAD Theorem 5.5",
        "records filled heaviest first up to Lemma 5.4",
        "pair",
        lambda epsilon, delta, threat: papers.rad_theorem_5_5(epsilon, delta, threat.prior.sorted_weights),
        knows_nothing=True,
        exact_success=True,
    ),
    Bound(
        "uniform-categories",
        "advantage",
        "RAD Corollary 5.6; thesis Corollary 1",
        "(e^eps - 1 + delta m)/(e^eps + m - 1) (m - 1)/m",
        "pair",
        lambda epsilon, delta, threat: papers.rad_corollary_5_6(epsilon, delta, threat.prior.support_size),
        knows_nothing=True,
        exact_success=True,
        uniform_prior=True,
        attained="for every delta, by revealing with delta, else randomised response",
        is_attained=_is_pair,
        worst=_reveal_or_respond,
    ),
    Bound(
        "heaviest-pairs",
        "advantage",
        "thesis Theorem 7, corrected",
        "pairs of records filled heaviest first",
        "pair",
        lambda epsilon, delta, threat: papers.thesis_theorem_7(epsilon, delta, threat.prior.sorted_weights),
        knows_nothing=True,
        exact_success=True,
        most_records=MANY,
    ),
    Bound(
        "heaviest-pairs-of-curve",
        "advantage",
        "thesis Theorem 8, corrected",
        "the same with the trade-off curve",
        "any",
        lambda guarantee, threat: papers.thesis_theorem_8(guarantee, threat.prior.sorted_weights),
        knows_nothing=True,
        exact_success=True,
        most_records=MANY,
    ),
    Bound(
        "uniform-curve",
        "advantage",
        "thesis Corollary 2",
        "(m - 1)/m max 1 - f(a) - a over the mean wrong guess",
        "any",
        lambda guarantee, threat: papers.thesis_corollary_2(guarantee, threat.prior.support_size),
        knows_nothing=True,
        exact_success=True,
        uniform_prior=True,
    ),
    Bound(
        "wpes-any-error",
        "advantage",
        "WPES'24 Theorem 7.2",
        "min(kappa+ (e^eps - 1), tanh(eps/2))",
        "pure",
        lambda epsilon, threat: papers.wpes_theorem_7_2(epsilon, threat.kappa_plus),
        knows_nothing=True,
    ),
    Bound(
        "wpes-exact",
        "advantage",
        "WPES'24 Theorem 7.3, corrected",
        "min(kappa+ (e^eps - 1), kappa+ (m - 1) tanh(eps/2) + kappa+ - kappa-)",
        "pure",
        lambda epsilon, threat: papers.wpes_theorem_7_3(
            epsilon, threat.prior.support_size, float(threat.prior.sorted_weights[-1]), threat.kappa_plus
        ),
        knows_nothing=True,
        exact_success=True,
    ),
    Bound(
        "worst-blocks",
        "advantage",
        "dprisk, theory 3.2",
        "max_k (E-1)/(E+k-1) [sum_{i<k} pi_i(1-pi_i) + pi_k sum_{i<k} pi_i]",
        "pure",
        lambda epsilon, threat: ours.worst_blocks(epsilon, threat.prior).advantage,
        knows_nothing=True,
        exact_success=True,
        attained="by randomised response on k blocks",
        is_attained=_is_pure,
        worst=lambda guarantee, threat: ours.worst_blocks(guarantee.epsilon_at(0.0), threat.prior).mechanism(),
    ),
    Bound(
        "sets",
        "advantage",
        "dprisk, theory 3.4 c",
        "max_g h(pi(S_g)) plus a delta term",
        "pair",
        lambda epsilon, delta, threat: ours.set_advantage(epsilon, delta, _kappa(threat), threat.ball_masses),
        knows_nothing=True,
        attained="at delta = 0 for uniform categories and rings",
        is_attained=_exchangeable,
    ),
    Bound(
        "knowledge",
        "advantage",
        "dprisk, theory 3.4",
        "h(min(kappa_aux, 1/(1 + e^(eps/2)))) plus a delta term",
        "pair",
        lambda epsilon, delta, threat: ours.knowledge_advantage(epsilon, delta, _kappa(threat), threat.kappa_aux),
    ),
    Bound(
        "universal",
        "advantage",
        "dprisk, theory 3.4 a",
        "tanh(eps/4) plus a delta term",
        "pair",
        lambda epsilon, delta, threat: ours.universal_advantage(epsilon, delta, _kappa(threat)),
    ),
    Bound(
        "curve-of-knowledge",
        "advantage",
        "dprisk, theory 3.4",
        "max 1 - f(a) - a, a <= kappa_aux",
        "any",
        lambda guarantee, threat: ours.curve_advantage(guarantee, threat.kappa_aux),
    ),
    Bound(
        "fixed-point",
        "advantage",
        "dprisk, theory 3.6",
        "(m - 1)(1/m - a), f(a) = (m - 1) a",
        "any",
        lambda guarantee, threat: ours.fixed_point_advantage(guarantee, threat.prior.support_size),
        knows_nothing=True,
        exact_success=True,
        uniform_prior=True,
        attained="where it equals Corollary 5.6",
        is_attained=_is_pair,
    ),
    Bound(
        "curve-program",
        "advantage",
        "dprisk, theory 3.6, any prior",
        "a convex program over the trade-off curve",
        "any",
        lambda guarantee, threat: programs.advantage_by_curve(guarantee, threat).value,
        knows_nothing=True,
        exact_success=True,
        most_records=FEW,
    ),
    Bound(
        "worst-mechanism",
        "advantage",
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
        "advantage",
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
        "success",
        "Balle et al. 2022; with knowledge theory 3.4",
        "kappa_aux e^eps",
        "pure",
        lambda epsilon, threat: papers.balle_success(epsilon, threat.kappa_aux),
    ),
    Bound(
        "wpes-success",
        "success",
        "WPES'24 Proposition 5.1",
        "kappa+ min(e^eps, 1 + (m - 1) tanh(eps/2))",
        "pure",
        lambda epsilon, threat: papers.wpes_proposition_5_1(epsilon, threat.prior.support_size, threat.kappa_plus),
        knows_nothing=True,
        exact_success=True,
    ),
    Bound(
        "curve-at-baseline",
        "success",
        "Hayes et al. 2023; with knowledge theory 3.4",
        "1 - f(kappa_aux)",
        "any",
        lambda guarantee, threat: papers.hayes_success(guarantee, threat.kappa_aux),
    ),
    Bound(
        "posterior",
        "success",
        "Swanberg et al. Theorem 3.2; with knowledge and delta theory 3.4",
        "beta(kappa_aux) + delta",
        "pair",
        lambda epsilon, delta, threat: papers.bayes_factor_success(epsilon, threat.kappa_aux, delta),
        attained="for uniform categories and delta = 0",
        is_attained=lambda guarantee, threat: threat.knows.is_none and _exchangeable(guarantee, threat),
    ),
    Bound(
        "worst-top-records",
        "success",
        "dprisk, theory 3.3",
        "delta + (1 - delta) max_k E/(E+k-1) (sum of the k largest pi)",
        "pair",
        lambda epsilon, delta, threat: ours.worst_top_records(epsilon, delta, threat.prior).success,
        knows_nothing=True,
        exact_success=True,
        attained="by revealing with delta, else randomised response on the top k",
        is_attained=_is_pair,
        worst=_reveal_or_respond,
    ),
    Bound(
        "curve-program-success",
        "success",
        "dprisk, theory 3.6, any prior",
        "a convex program over the trade-off curve",
        "any",
        lambda guarantee, threat: programs.success_by_curve(guarantee, threat).value,
        knows_nothing=True,
        exact_success=True,
        most_records=FEW,
    ),
    Bound(
        "worst-mechanism-success",
        "success",
        "dprisk, theory 3.1",
        "the compact dual: the worst epsilon-DP mechanism",
        "pure",
        lambda epsilon, threat: programs.worst_success(epsilon, threat),
        most_records=FEW,
        attained="always, up to the solver's tolerance",
        is_attained=_is_pure,
    ),
    Bound(
        "worst-mechanism-delta-success",
        "success",
        "dprisk, theory 3.1 with delta",
        "the worst (epsilon, delta)-DP mechanism as a linear program",
        "one pair",
        lambda epsilon, delta, threat: programs.worst_with_delta(epsilon, delta, threat, "success"),
        most_records=VERY_FEW,
        attained="always, up to the solver's tolerance",
        is_attained=_is_pair,
    ),
    Bound(
        "attaxonomy-best-case",
        "match among many",
        "Attaxonomy Corollary 4.7",
        "n kappa e^eps",
        "pure",
        lambda epsilon, threat, people: papers.attaxonomy_best_case(epsilon, threat.kappa_plus, people),
        knows_nothing=True,
    ),
    Bound(
        "best-case",
        "match among many",
        "dprisk, theory 3.7; Swanberg et al. Theorem 3.2",
        "1 - (1 - beta(kappa))^n",
        "pure",
        lambda epsilon, threat, people: papers.best_case(epsilon, threat.kappa_plus, people),
        knows_nothing=True,
    ),
    Bound(
        "attaxonomy-average",
        "match of a random one",
        "Attaxonomy Corollary 4.11",
        "kappa e^eps",
        "pure",
        lambda epsilon, threat, people: papers.attaxonomy_average(epsilon, threat.kappa_plus),
        knows_nothing=True,
    ),
    Bound(
        "average-case",
        "match of a random one",
        "dprisk, theory 3.7; Swanberg et al. Theorem 3.2",
        "beta(kappa)",
        "pure",
        lambda epsilon, threat, people: papers.average_case(epsilon, threat.kappa_plus),
        knows_nothing=True,
    ),
)
