"""The commands `dprisk population bound` and `dprisk population audit`."""

from collections.abc import Sequence
from typing import Any

import click

from dprisk.answers import Answer
from dprisk.cli.marginals import marginals_command
from dprisk.cli.options import FILE, Command, Group, Options, option
from dprisk.cli.printing import say
from dprisk.cli.tables import show_as
from dprisk.errors import fail, require
from dprisk.guarantees import ApproxDP, GaussianDP, Guarantee
from dprisk.pictures import ready, write
from dprisk.population import OneRun, Targets, at_most, audit_one_run

VIOLATED = 1  # exit code, as of `dprisk audit`


def population_command() -> click.Group:
    """`dprisk population`, and what it can be asked."""
    told = "What do many people risk at once, and what does one run tell?"
    return Group("population", told, (_bound_command(), _audit_command(), marginals_command()))


def answer_options() -> list[click.Parameter]:
    """How the answer is given."""
    return [
        option("alpha", float, "Chance that the answer is wrong.", default=0.05),
        option("out", FILE, "A picture to write, by its ending: .svg or .png."),
        option("json", bool, "Print JSON instead of a table."),
        option("csv", bool, "Print CSV instead of a table: a line for each number."),
    ]


def tell(answer: Answer, given: Options) -> None:
    """Any answer, as it was asked for, and its picture."""
    out = given["out"]
    if out is not None:
        ready(out)
        write(answer.picture(), out)  # type: ignore[attr-defined]
    show_as(answer, given)
    if out is not None:
        say(f"Written to {out}.", err=given["json"] or given["csv"])


def _bound_command() -> Command:
    sections: dict[str, Sequence[click.Parameter]] = {
        "People": [
            option(
                "targets",
                FILE,
                "A CSV file of people: a column `baseline`, how likely the best guess about each is, or `values`, so "
                "many equally likely ones; perhaps `people`, how many a row stands for, and `label`.",
            ),
            option("people", int, "Instead of a file: how many people there are."),
            option("values", int, "With --people: how many equally likely values each may have."),
            option("baseline", float, "With --people: how likely the best guess about each is."),
            option("wrong_by", float, "How far off these may be: no value is more likely by more than that."),
        ],
        "Guarantee": [
            option("epsilon", float, "The epsilon of the release."),
            option("delta", float, "Its delta; 0 if left out."),
            option("mu", float, "Instead of --epsilon: the mu of Gaussian DP."),
            option(
                "relation",
                click.Choice(("replace-one", "add-remove"), case_sensitive=False),
                "What that is promised for: one record is replaced, or one is added or removed, as accountants of "
                "DP-SGD mostly mean it.",
                default="replace-one",
            ),
        ],
        "Answer": answer_options(),
    }
    examples = ("--targets people.csv --epsilon 1 --delta 1e-5", "--people 100 --values 10 --epsilon 1")
    return Command("bound", _bound, sections, examples=examples)


def _bound(**given: Any) -> None:
    """How many of these people's records can be reconstructed?

    Tells the largest number, whatever the mechanism and the attacker, and what a guess about one person can come to, if
    people's records are independent of each other and no guess is likelier beforehand than you say.
    """
    tell(at_most(_guarantee(given), _targets(given), given["alpha"]), given)


def _guarantee(given: Options) -> Guarantee:
    if given["mu"] is not None:
        require(given["epsilon"] is None and given["delta"] is None, "Give --mu, or --epsilon and --delta.")
        return GaussianDP(given["mu"], given["relation"])
    require(given["epsilon"] is not None, "--epsilon is missing: what does the release promise?")
    return ApproxDP(given["epsilon"], given["delta"] or 0.0, given["relation"])


def _targets(given: Options) -> Targets:
    if given["targets"] is not None:
        for name in ("people", "values", "baseline"):
            require(given[name] is None, f"--{name} is for people without a file; leave it or --targets out.")
        found = Targets.from_csv(given["targets"])
    else:
        people, values, baseline = given["people"], given["values"], given["baseline"]
        require(people is not None, "Give --targets FILE, or --people with --values or --baseline.")
        require((values is None) != (baseline is None), "Give one of --values and --baseline.")
        found = Targets.uniform(people, values) if values is not None else Targets([baseline] * people)
    return found if given["wrong_by"] is None else found.with_wrong_priors(given["wrong_by"])


def _audit_command() -> Command:
    sections: dict[str, Sequence[click.Parameter]] = {
        "What the run gave": [
            option(
                "scores",
                FILE,
                "A CSV file with a row a canary: columns `score` and `member`, or `guess`, `truth` and perhaps "
                "`certainty`.",
            ),
            option("successes", int, "Instead of a file: how many guesses were right."),
            option("targets", int, "With --successes: how many canaries there were, with and without a guess."),
            option(
                "guesses", int, "How many guesses count, a number fixed before the run; left out, a file's best moment."
            ),
            option("prior", float, "How likely each canary was in; 0.5 if left out."),
            option("values", int, "Instead of --prior: how many equally likely values each canary had."),
        ],
        "Claim": [
            option(
                "claim",
                float,
                "The claimed epsilon, if there is one: exit code 1 if it is broken. For adding or removing a record if "
                "the canaries were in or out, for changing a value if they had values.",
            ),
            option("delta", float, "The delta; 0 if left out."),
        ],
        "Answer": answer_options(),
    }
    examples = (
        "--scores canaries.csv --delta 1e-5 --claim 1",
        "--successes 61 --guesses 100 --targets 1000 --prior 0.5 --delta 1e-5",
    )
    return Command("audit", _audit, sections, examples=examples)


def _audit(**given: Any) -> None:
    """Which epsilon does a single run with many canaries certify?

    Each canary was in or out, or had one of several values, by a coin of its own, and the attacker guessed which from
    what one run gave. Without --guesses the certificate of a file is read at its best moment.
    """
    require(given["prior"] is None or given["values"] is None, "Give one of --prior and --values.")
    count = given["guesses"]
    if given["scores"] is not None:
        require(given["successes"] is None and given["targets"] is None, "A file has its own counts; drop the others.")
        run = OneRun.from_csv(given["scores"], given["prior"], given["values"])
    else:
        for name in ("successes", "guesses", "targets"):
            if given[name] is None:
                fail(f"--{name} is missing: give --successes, --guesses and --targets, or a file of --scores.")
        prior = 0.5 if given["prior"] is None else given["prior"]
        chance = {"prior": prior} if given["values"] is None else {"values": given["values"]}
        run = OneRun.counted(given["successes"], count, given["targets"], **chance)
    report = audit_one_run(run, given["claim"], delta=given["delta"] or 0.0, alpha=given["alpha"], guesses=count)
    tell(report, given)
    click.get_current_context().exit(VIOLATED if report.verdict == "violated" else 0)
