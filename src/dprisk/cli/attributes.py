"""The command `dprisk learn attributes`: could somebody learn an attribute from a model?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dprisk import datasets
from dprisk.cli.options import FILE, Command, Options, option
from dprisk.cli.printing import print_csv, print_json
from dprisk.cli.progress import live
from dprisk.cli.sweeping import INTERRUPTED, Numbers
from dprisk.cli.tables import show
from dprisk.datasets import LabelledTable
from dprisk.errors import fail, require
from dprisk.pictures import ready, write

if TYPE_CHECKING:
    from dprisk.learning.attribute_risk import AttributeRisk

DATA: dict[str, Callable[..., LabelledTable]] = {
    "census": datasets.census,
    "census-2019": datasets.census_2019,
    "census19": datasets.census19,
    "hospital": datasets.hospital,
    "texas-100x": datasets.texas_100x,
}
WITH_INCOME = ("census-2019", "census19")
OF_THE_STUDY = ("others", "people", "targets", "trainings", "alpha", "seed")
OF_THE_TRAINING = ("sample_rate", "steps", "clip", "learning_rate", "device")


def attributes_command() -> Command:
    """`dprisk learn attributes`."""
    sections = {
        "Data": [
            option("data", click.Choice(list(DATA)), "Whose attribute, in which table.", required=True),
            option("data_dir", FILE, "The folder of the data sets.", envvar="DPRISK_DATA", show_envvar=True),
            option(
                "income", float, f"The label: earns at least so many dollars. Only for {' and '.join(WITH_INCOME)}."
            ),
        ],
        "Training": [
            option("epsilon", Numbers(5), "What each training promises; several as in 1,50.", required=True),
            option("delta", float, "The chance that epsilon fails.", default=1e-5),
            option("sample_rate", float, "Chance of a person to be in a batch.", default=0.05),
            option("steps", int, "Steps of a training.", default=200),
            option("clip", float, "The norm that gradients are clipped to.", default=1.0),
            option("learning_rate", float, "How far a step goes.", default=1.0),
            option("device", str, "Where to compute: cpu, or cuda.", default="cpu"),
        ],
        "Study": [
            option("others", int, "People in every training, whom the attacker knows.", default=4500),
            option("people", int, "People who may take part, and are attacked.", default=1000),
            option("targets", int, "How many of them take part in each training; half if left out."),
            option("trainings", int, "How many models are trained.", default=200),
            option("alpha", float, "Chance that an interval is wrong.", default=0.05),
            option("seed", int, "A whole number that fixes all that is random.", default=0),
        ],
        "Answer": [
            option("out", FILE, "A picture to write, by its ending: .svg or .png; of one epsilon."),
            option("json", bool, "Print JSON instead of tables, with the details."),
            option("csv", bool, "Print CSV: a line for each attack."),
        ],
    }
    examples = (
        "--data census --epsilon 1",
        "--data census-2019 --income 90000 --epsilon 1,50 --trainings 100",
    )
    return Command("attributes", _attributes, sections, (), examples)


def _attributes(**given: Any) -> None:
    """Could somebody learn an attribute from a model?

    Trains networks by DP-SGD many times, with and without each of some people, and guesses their sensitive attribute
    from what the models answer: by the attacks Yeom, CSMIA and WCAI. Beside them stands what is guessed without a
    model. The advantage is what taking part adds.
    """
    epsilons = given["epsilon"] if isinstance(given["epsilon"], tuple) else (given["epsilon"],)
    if given["out"] is not None:
        require(len(epsilons) == 1, f"--out draws one epsilon; {len(epsilons)} were given.")
        ready(given["out"])
    table = _table(given)
    answers: list[AttributeRisk] = []
    for epsilon in epsilons:
        answers.append(_studied(table, epsilon, given))
        if not (given["json"] or given["csv"]):
            show(answers[-1])
        if not answers[-1].complete:
            break
    if given["json"]:
        print_json([answer.to_dict() for answer in answers])
    if given["csv"]:
        print_csv([line for answer in answers for line in answer.records])
    if given["out"] is not None:
        write(answers[0].picture(), given["out"])
        click.echo(f"Written to {given['out']}.", err=True)
    click.get_current_context().exit(0 if answers[-1].complete else INTERRUPTED)


def _table(given: Options) -> LabelledTable:
    folder: Path | None = given["data_dir"]
    if folder is None:
        fail("Say where the data are: --data-dir FOLDER, or the variable DPRISK_DATA.")
    name, income = given["data"], given["income"]
    if income is None:
        return DATA[name](folder)
    require(name in WITH_INCOME, f"--income has no meaning for {name}: only {' and '.join(WITH_INCOME)} tell incomes.")
    return DATA[name](folder, income=income)


def _studied(table: LabelledTable, epsilon: float, given: Options) -> AttributeRisk:
    from dprisk.learning.attribute_study import infer_attributes
    from dprisk.learning.private_networks import PrivateNetworks

    training = {name: given[name] for name in OF_THE_TRAINING}
    learner = PrivateNetworks.with_epsilon(epsilon, given["delta"], **training)
    with live("trainings") as tell:
        return infer_attributes(table, learner, progress=tell, **{name: given[name] for name in OF_THE_STUDY})
