"""The weakest noise that keeps a target: a search that always ends on the safe side."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dprisk.errors import GuaranteeError, fail
from dprisk.values import Adjustable, Parameter

Measure = Callable[[Any], float]
NOISE = 1e-5  # how closely a target is met where the risk comes from an accountant
NOT_KEPT = "The strongest noise that was tried still has {:g}, above the target {:g}."
SMALLEST, LARGEST = 1e-9, 1e9  # parameters that are tried before a target counts as out of reach, or as met anyhow


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

    def __init__(self, parameter: Parameter, build: Callable[[float], Adjustable], measure: Measure) -> None:
        self._build, self._measure, self._sign = build, measure, 1.0 if parameter.rises else -1.0
        self._seen: dict[float, tuple[Adjustable, float]] = {}

    def parameter(self, x: float) -> float:
        return math.exp(self._sign * x)

    def at(self, x: float) -> tuple[Adjustable, float]:
        if x not in self._seen:
            subject = self._build(self.parameter(x))
            if len(self._seen) >= 8:  # privacy loss distributions are large
                del self._seen[next(iter(self._seen))]
            self._seen[x] = subject, self._measure(subject)
        return self._seen[x]

    def risk(self, x: float) -> float:
        return self.at(x)[1]

    def found(self, x: float, unlimited: bool = False) -> Found:
        return Found(self.parameter(x), *self.at(x), unlimited)


def weakest(template: Adjustable, measure: Measure, target: float) -> Found:
    """The weakest noise of a template at which the measure is at most the target."""
    parameter = required_parameter(template)
    line = _Line(parameter, template.with_parameter, measure)
    if not template.sketches:
        low, high = _bracket(line.risk, target)
        if low == high:
            return line.found(low, unlimited=True)
        return line.found(_safe(line.risk, target, _root(line.risk, target, low, high)))
    if template.without_noise is not None and (left := measure(template.without_noise)) <= target:
        return Found(LARGEST if parameter.rises else SMALLEST, template.without_noise, left, unlimited=True)
    roots: list[float] = []
    slope = 0.0
    for sketch in (_Line(parameter, build, measure) for build in template.sketches):
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


def required_parameter(template: Any) -> Parameter:
    """The parameter that can be calibrated, or a sentence that says there is none."""
    parameter = template.parameter if isinstance(template, Adjustable) else None
    if parameter is None:
        kind = template if isinstance(template, type) else type(template)
        fail(
            f"{kind.__name__} has no parameter to calibrate; give a mechanism whose noise can be set, "
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


def _bracket(risk: Callable[[float], float], target: float) -> tuple[float, float]:
    """A safe and an unsafe x, by doubling steps away from 0; equal if every x is safe."""
    first, last = math.log(SMALLEST), math.log(LARGEST)
    near, step, safe = 0.0, 0.5, risk(0.0) <= target
    while True:
        far = min(near + step, last) if safe else max(near - step, first)
        if (risk(far) <= target) != safe:
            return (near, far) if safe else (far, near)
        if far == last:
            return far, far
        if far == first:
            fail(NOT_KEPT.format(risk(far), target))
        near, step = far, 2 * step


def _root(risk: Callable[[float], float], target: float, low: float, high: float, tolerance: float = 1e-15) -> float:
    from scipy.optimize import brentq

    return float(brentq(lambda x: risk(x) - target, low, high, xtol=tolerance, rtol=1e-15, maxiter=300, disp=False))


def _safe(risk: Callable[[float], float], target: float, x: float) -> float:
    """x, moved down by ever larger steps until the risk computed there is in bounds."""
    step = 2.0**-53
    while risk(x) > target:
        x -= step * max(1.0, abs(x))
        step *= 4
        if x < math.log(SMALLEST):
            fail(NOT_KEPT.format(risk(x), target))
    return x
