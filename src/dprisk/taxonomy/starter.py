"""A threat model to start from: every name with what it means, and the options that there are."""

from __future__ import annotations

from dataclasses import dataclass

from dprisk.taxonomy.dimensions import Dimension, of_role
from dprisk.taxonomy.keys import LEVELS
from dprisk.taxonomy.writing import toml_value

CHOSEN = {
    "dataset_generation": "drawn",
    "privacy_unit": "individual",
    "target_source": "drawn",
    "access": "blackbox",
    "population_knowledge": "description",
    "dataset_knowledge": "none",
    "baseline": "no-access",
    "metric": "exact-match",
}


@dataclass(frozen=True)
class Starter:
    """What `dprisk init` asks for."""

    title: str = "Our survey"
    mechanism: str = "grr"
    epsilon: float = 1.0
    size: int = 10
    attacker: str = "Curious outsider"
    tolerance: float = 0.05
    impact: str = "moderate"

    def to_toml(self) -> str:
        """The file, commented."""
        return "\n".join([*self._top(), *self._roles(), *self._attacker(), ""])

    def _top(self) -> list[str]:
        return [
            "# A threat model: what is released, over which records, and who might come after it.",
            "# `dprisk check FILE` tells whether it is whole, `dprisk report FILE --out report.html` answers it.",
            f"title = {toml_value(self.title)}",
            'about = "Say in a few words what is released, and to whom."',
            "",
            "[release]",
            '# A mechanism, or a guarantee such as `guarantee = "pure"`; `dprisk catalogue` lists the names. Or a',
            "# query with data, universe and noise, as in a release file; or parts = [...], several at once.",
            f"mechanism = {toml_value(self.mechanism)}",
            f"epsilon = {toml_value(self.epsilon)}",
            "",
            "[universe]",
            "# The possible records and how likely each is: a name such as uniform or zipf:1.1 with a size, a CSV file",
            '# with label and count, or probabilities: prior = { yes = 0.1, no = 0.9 }. Or table = "people.csv", one',
            "# row a person.",
            'prior = "uniform"',
            f"size = {self.size}",
        ]

    def _roles(self) -> list[str]:
        lines = ["", "[crafter]", *(_choice(it) for it in of_role("crafter"))]
        lines.append(
            "# people = 1000          # how many people take part: then guesses about all of them are looked at"
        )
        lines.append("# records_per_unit = 2   # how many records one privacy unit has at most")
        return [*lines, "", "[evaluator]", *(_choice(it) for it in of_role("evaluator"))]

    def _attacker(self) -> list[str]:
        lines = [
            "",
            "# One section like this for each attacker.",
            "[[attacker]]",
            f"name = {toml_value(self.attacker)}",
        ]
        lines.append('about = "Who is it, and why would it come?"')
        lines += [_choice(it, "reconstruction") for it in of_role("attacker")]
        lines.append(
            "# Columns of the target's record that it knows, where there is a table. Then it knows something of the"
            '\n# dataset: above, dataset_knowledge = "random", or "chosen" if it chose whom it knows.'
            '\n# knows = ["age", "sex"]'
        )
        lines.append('# wants = ["illness"]      # columns that it wants')
        lines.append(
            f"tolerance = {toml_value(self.tolerance)}   # the largest tolerated advantage: 0.05 is 50 of 1000"
        )
        lines.append(f"impact = {toml_value(self.impact)}   # {', '.join(LEVELS)}")
        return lines


def _choice(dimension: Dimension, goal: str = "") -> str:
    """A dimension with one option, and the others behind it."""
    chosen = CHOSEN.get(dimension.name, goal)
    options = ", ".join(option.name for option in dimension.options)
    return f"# {dimension.question}\n{dimension.name} = {toml_value(chosen)}   # {options}"
