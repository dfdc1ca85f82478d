"""The weakest noise that keeps a target: a search that always ends on the safe side."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from dprisk.errors import DpriskError, GuaranteeError, ParameterError, fail
from dprisk.values import Adjustable, Parameter, refuse_kind

Measure = Callable[[Any], float]
Progress = Callable[[float, float], None]  # a parameter that was tried, and the measure there
NOISE = 1e-5  # how closely a target is met where the risk comes from an accountant
NOT_KEPT = "The strongest noise that was tried still has {}, above the target {}."
NO_PURE = (
    "However strong the noise is, epsilon is infinite at delta 0: name a delta to keep with it, as in "
    "epsilon=({:g}, 1e-5), or --to-epsilon {:g} --to-delta 1e-5."
)
BY_DELTA = "A delta of {:g} leaves nothing of the target {}: at epsilon 0 there is {}. Take a smaller one."
AT_BASELINE = (
    "A success of {:g} cannot be kept: the baseline, without any release, is {:g}, and the strongest noise that was "
    "tried may add a little to it. Take a larger one."
)
ROUNDING = 1e-12  # a target that exceeds the baseline by less is the baseline
SMALLEST, LARGEST = 1e-9, 1e9  # parameters that are tried before a target counts as out of reach, or as met anyhow
FIRST, LAST = math.log(SMALLEST), math.log(LARGEST)
EDGE = 1e-3  # how closely the last noise is found that can still be made, where a weaker or stronger one is refused
LONG = 12.0  # the logarithm of how much stronger noise is looked at where nothing is known of all that is stronger
STEP = 0.5  # between the places that are looked at where the risk wavers


@dataclass(frozen=True)
class Found:
    """A parameter, what it makes, the measure there, and whether any parameter would do."""

    value: float
    subject: Any
    measured: float
    unlimited: bool = False


class _Line:
    """The risk along a parameter, as a function of x = its logarithm or the negative of that, so that it rises with x.

    Remembers what it has built: near the end of a search the same place is asked for again.
    """

    def __init__(
        self,
        parameter: Parameter,
        build: Callable[[float], Adjustable],
        measure: Measure,
        progress: Progress | None = None,
    ) -> None:
        self._build, self._measure, self._sign = build, measure, 1.0 if parameter.rises else -1.0
        self._progress = progress
        self._seen: dict[float, tuple[Adjustable, float]] = {}

    def parameter(self, x: float) -> float:
        return math.exp(self._sign * x)

    def at(self, x: float) -> tuple[Adjustable, float]:
        if x not in self._seen:
            subject = self._build(self.parameter(x))
            if len(self._seen) >= 8:  # privacy loss distributions are large
                del self._seen[next(iter(self._seen))]
            self._seen[x] = subject, self._measure(subject)
            if self._progress is not None:
                self._progress(self.parameter(x), self._seen[x][1])
        return self._seen[x]

    def risk(self, x: float) -> float:
        return self.at(x)[1]

    def place(self, value: float) -> float:
        """The x of a parameter; 0 if it has none."""
        return self._sign * math.log(value) if 0 < value < math.inf else 0.0

    def found(self, x: float, unlimited: bool = False) -> Found:
        return Found(self.parameter(x), *self.at(x), unlimited)


class NotKept(ParameterError):
    """No noise that was tried keeps the target."""


def weakest(
    template: Adjustable, measure: Measure, target: float, progress: Progress | None = None, baseline: float = 0.0
) -> Found:
    """The weakest noise of a template at which the measure is at most the target; `progress` is told what is tried.

    Of a success the `baseline` is what there is without any release.
    """
    try:
        return _weakest(template, measure, target, progress)
    except NotKept:
        if target > baseline * (1 + ROUNDING):
            raise
        return fail(AT_BASELINE.format(target, baseline))


def _weakest(template: Adjustable, measure: Measure, target: float, progress: Progress | None) -> Found:
    parameter = required_parameter(template)
    _refuse_delta(template, measure, target)
    line = _Line(parameter, template.with_parameter, measure, progress)
    if not template.sketches:
        low, high = _bracket(line.risk, target, _start(line, parameter))
        if parameter.wavers:
            low, high = _settled(line, template.ceiling, measure, target, low, high)
        if low == high:
            return line.found(low, unlimited=low == LAST)
        return line.found(_safe(line.risk, target, _root(line.risk, target, low, high)))
    if template.without_noise is not None and (left := measure(template.without_noise)) <= target:
        return Found(LARGEST if parameter.rises else SMALLEST, template.without_noise, left, unlimited=True)
    roots: list[float] = []
    slope = 0.0
    for sketch in (_Line(parameter, build, measure, progress) for build in template.sketches):
        if roots:
            x, slope = _follow(sketch.risk, target, roots[-1], slope, tolerance=0.02)
        else:
            low, high = _bracket(sketch.risk, target)
            if low == high:  # not even tried on the real thing, which has no such weak noise
                return sketch.found(low, unlimited=True)
            x = _root(sketch.risk, target, low, high, 0.01)
            slope = max(1e-3, math.log(sketch.risk(x + 1e-3) / max(sketch.risk(x), 1e-300)) / 1e-3)
        roots.append(x)
    # An accountant's risk has rounding of its own; aiming a little lower saves asking it again and again.
    aim = target * (1 - NOISE / 2)
    x, _ = _follow(line.risk, aim, template.extrapolate(roots), slope, tolerance=NOISE / 2, last_step=False)
    return line.found(_safe(line.risk, target, x))


def _refuse(measured: float, target: float) -> NoReturn:
    """Only an epsilon without a delta is ever infinite."""
    told = NO_PURE.format(target, target) if math.isinf(measured) else NOT_KEPT.format(*_told_apart(measured, target))
    fail(told, NotKept)


def _told_apart(*values: float) -> list[str]:
    """Two numbers in as few digits as tell them apart, at least six."""
    shown = ([f"{value:.{digits}g}" for value in values] for digits in range(6, 18))
    return next((pair for pair in shown if len(set(pair)) == len(values)), [repr(value) for value in values])


def _refuse_delta(template: Adjustable, measure: Measure, target: float) -> None:
    """Refuse a target that a guarantee's own delta breaks."""
    delta = float(getattr(template, "delta", 0.0))
    if delta > 0 and (left := measure(template.with_parameter(SMALLEST))) > target:
        fail(BY_DELTA.format(delta, *_told_apart(target, left)), NotKept)


def required_parameter(template: Any) -> Parameter:
    """The parameter that can be calibrated, or a sentence that says there is none."""
    refuse_kind(template)
    parameter = template.parameter if isinstance(template, Adjustable) else None
    if parameter is None:
        fail(
            f"{type(template).__name__} has no parameter to calibrate; give a mechanism whose noise can be set, "
            "PureDP, ApproxDP, GaussianDP, ZCDP or DPSGD.",
            GuaranteeError,
        )
    return parameter


def _follow(
    risk: Callable[[float], float], target: float, x: float, slope: float, tolerance: float, last_step: bool = True
) -> tuple[float, float]:
    """A root near x by secant steps on the logarithm of the risk, which is nearly straight, and the slope there.

    Ends where the risk is within the tolerance; `last_step` takes one more step, without looking where it leads.
    """

    def gap(x: float) -> float:
        return math.log(max(risk(x), 1e-300) / target)

    value = gap(x)
    for _ in range(6):
        if abs(value) <= tolerance:
            break
        # A step of more than a factor e in the parameter would say that the slope was not about right.
        new = x - min(1.0, max(-1.0, value / slope))
        new_value = gap(new)
        if (new_value - value) / (new - x) > 0:
            slope = (new_value - value) / (new - x)
        x, value = new, new_value
    return x - value / slope if last_step else x, slope


def _start(line: _Line, parameter: Parameter) -> float:
    """Where to begin: at the parameter 1, or at that of the template if there is nothing to be had at 1."""
    try:
        line.risk(0.0)
    except DpriskError:
        return min(max(line.place(parameter.value), FIRST), LAST)
    return 0.0


def _bracket(risk: Callable[[float], float], target: float, start: float = 0.0) -> tuple[float, float]:
    """A safe and an unsafe x, by doubling steps away from the start; the last x twice if it and all before it are safe.

    Beyond some x a mechanism may not exist, or its risk be out of reach: that x is then the last.
    """
    near, step, safe, refused = start, STEP, risk(start) <= target, False
    while near != (end := LAST if safe else FIRST):
        far = min(near + step, end) if safe else max(near - step, end)
        there = _tried(risk, far)
        if there is None:
            refused, step = True, step / 4
            if step < EDGE:
                break
            continue
        if (there <= target) != safe:
            return (near, far) if safe else (far, near)
        near, step = far, step if refused else 2 * step
    if not safe:
        _refuse(risk(near), target)
    return near, near


def _tried(risk: Callable[[float], float], x: float) -> float | None:
    """The risk, or None where it is refused."""
    try:
        return risk(x)
    except DpriskError:
        return None


def _settled(
    line: _Line, ceiling: Callable[[float], Any], measure: Measure, target: float, low: float, high: float
) -> tuple[float, float]:
    """Where the risk may fall again as noise gets weaker: the first safe and unsafe x, seen from the strongest noise.

    Goes down from a safe x until the ceiling of the risk keeps the target, which is then kept by all stronger noise; on
    the way it is looked at in steps only. Where no ceiling is known it stops once the target was kept for long.
    """

    def most(x: float) -> float:
        top = ceiling(line.parameter(x))
        return math.inf if top is None else measure(top)

    x, safe, kept = low, True, low
    while x > FIRST:
        top_risk = _tried(most, x)
        is_long = safe and top_risk in (None, math.inf) and min(kept, 0.0) - x > LONG
        if is_long or (top_risk is not None and top_risk <= target):
            break
        x = max(x - STEP, FIRST)
        there = _tried(line.risk, x)
        if there is None:
            break
        if there > target:
            high, safe = x, False
        elif not safe:
            low, safe, kept = x, True, x
    if not safe:
        _refuse(line.risk(high), target)
    return low, high


def _root(risk: Callable[[float], float], target: float, low: float, high: float, tolerance: float = 1e-15) -> float:
    from scipy.optimize import brentq

    return float(brentq(lambda x: risk(x) - target, low, high, xtol=tolerance, rtol=1e-15, maxiter=300, disp=False))


def _safe(risk: Callable[[float], float], target: float, x: float) -> float:
    """x, moved down by ever larger steps until the risk computed there is in bounds."""
    step = 2.0**-53
    while risk(x) > target:
        x -= step * max(1.0, abs(x))
        step *= 4
        if x < FIRST:
            _refuse(risk(x), target)
    return x
