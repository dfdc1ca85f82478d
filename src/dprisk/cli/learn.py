"""The commands `dprisk learn ...`: what could somebody find out from trainings with DP-SGD?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dprisk import datasets
from dprisk.catalogue.naming import named_prior, prior_names
from dprisk.cli.attributes import attributes_command
from dprisk.cli.options import FILE, Command, Group, Options, option
from dprisk.cli.printing import print_csv, print_json
from dprisk.cli.progress import live
from dprisk.cli.subjects import read_prior
from dprisk.cli.sweeping import INTERRUPTED, Numbers
from dprisk.cli.tables import show
from dprisk.errors import MissingPackageError, fail, require
from dprisk.pictures import ready, write

if TYPE_CHECKING:
    from dprisk.learning import Examples, GradientAttack, Recipe
    from dprisk.threat import Prior

DATA = ("mnist", "fashion-mnist", "digits")
KNOWS = ("none", "label", "all")
LEARNING_RATE = {"mlp": 1.0, "cnn": 0.5}  # thesis, Table 7.5


def learn_command() -> click.Group:
    """`dprisk learn`, with its commands."""
    told = "What could somebody find out from trainings with DP-SGD?"
    return Group("learn", told, (attack_command(), attributes_command()))


def attack_command() -> Command:
    """`dprisk learn attack`."""
    sections = {
        "Data": [
            option(
                "data",
                click.Choice(DATA),
                "Pictures to learn from; digits are small ones that come with scikit-learn.",
                required=True,
            ),
            option("data_dir", FILE, "The folder of the data sets.", envvar="DPRISK_DATA", show_envvar=True),
            option("others", int, "Records that the attacker knows.", default=999),
            option("candidates", int, "Records of which one took part.", default=8),
        ],
        "Training": [
            option("epsilon", Numbers(5), "What each training promises; several as in 1,5,10.", required=True),
            option("delta", float, "The chance that epsilon fails.", default=1e-5),
            option("network", click.Choice(list(LEARNING_RATE)), "One hidden layer of ten, or the thesis's small CNN."),
            option("steps", int, "Steps of a training.", default=100),
            option("clip", float, "The norm that gradients are clipped to.", default=0.1),
            option("learning_rate", float, "How far a step goes; 1 for mlp, 0.5 for cnn if left out."),
            option("sample_rate", float, "Chance of a record to be in a batch.", default=1.0),
        ],
        "Attacker": [
            option("knows", str, "What it knows of the record; several as in none,label,all.", default=",".join(KNOWS)),
            option("prior", str, f"{prior_names()}; or worst-pair, the thesis's worst prior.", default="uniform"),
        ],
        "Answer": [
            option("runs", int, "Trainings for each epsilon.", default=1000),
            option("alpha", float, "Chance that an interval is wrong.", default=0.01),
            option("seed", int, "A whole number that fixes all that is random.", default=0),
            option("device", str, "Where to compute: cpu, or cuda.", default="cpu"),
            option("fast", bool, "On a GPU: compiled, and TF32 for what everybody else adds."),
            option("file", FILE, "Where trainings that are done are kept, to go on after an interruption."),
            option("out", FILE, "A picture to write, by its ending: .svg or .png."),
            option("json", bool, "Print JSON."),
            option("csv", bool, "Print CSV."),
        ],
    }
    examples = (
        "--data digits --epsilon 1,10 --runs 200",
        "--data mnist --data-dir data --epsilon 1,5,10",
    )
    return Command("attack", _attack, sections, examples=examples)


def _attack(**given: Any) -> None:
    """What does somebody gain who sees every noisy gradient of a training, and knows all records but one?"""
    if given["out"] is not None:
        ready(given["out"])
    found = _found(given)
    if given["out"] is not None:
        write(found.picture(), given["out"])
    if given["json"]:
        inputs = {name: str(value) if isinstance(value, Path) else value for name, value in given.items()}
        print_json(found.to_dict() | {"inputs": {name: value for name, value in inputs.items() if value is not None}})
    elif given["csv"]:
        print_csv(found.records)
    else:
        show(found)
    if given["out"] is not None:
        click.echo(f"Written to {given['out']}.", err=given["json"] or given["csv"])


def _found(given: Options) -> GradientAttack:
    from dprisk.learning import AttackInterrupted, attack_gradients, noise_for

    data, candidates = _examples(given)
    recipe = _recipe(given, data, candidates)
    epsilon, delta = given["epsilon"], given["delta"]
    levels = [noise_for(each, delta, recipe) for each in (epsilon if isinstance(epsilon, tuple) else (epsilon,))]
    prior = _prior(given, replace(recipe, noise_multiplier=min(levels)), data, candidates)
    asked = {name: given[name] for name in ("runs", "alpha", "delta", "seed", "device", "fast", "file")}
    knows = [word.strip() for word in given["knows"].split(",")]
    try:
        with live("trainings") as tell:
            progress = None if tell is None else lambda done, wanted: tell(done, wanted, "")
            return attack_gradients(
                recipe, data, candidates, prior, knows=knows, noise_multipliers=levels, progress=progress, **asked
            )
    except AttackInterrupted as stop:
        click.echo(f"\n{stop}", err=True)
        click.get_current_context().exit(INTERRUPTED)


def _examples(given: Options) -> tuple[Examples, Examples]:
    """The first pictures, whose records the attacker knows, and the next ones, of which one took part."""
    from dprisk.learning import Examples

    if given["data"] == "digits":
        every = _digits()
    else:
        folder = given["data_dir"]
        if folder is None:
            fail(f"Where is {given['data']}? Give --data-dir, the folder of its files, or set DPRISK_DATA to it.")
        every = (datasets.mnist if given["data"] == "mnist" else datasets.fashion_mnist)(folder)
    others, size = given["others"], given["candidates"]
    require(others >= 1 and size >= 1, "--others and --candidates must be at least 1.")
    there = len(every[1])
    require(
        others + size <= there, f"{given['data']} has {there} pictures, fewer than --others and --candidates ask for."
    )
    inputs, labels = every[0].reshape(there, -1), every[1]
    shown = Examples(inputs[: others + size], labels[: others + size])
    return shown[:others], shown[others:]


def _digits() -> tuple[Any, Any]:
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise MissingPackageError('The digits need scikit-learn: pip install "dprisk[learning]".') from None
    loaded = load_digits()
    return loaded.data / 16, loaded.target


def _recipe(given: Options, data: Examples, candidates: Examples) -> Recipe:
    from dprisk.learning import Recipe, mlp, small_cnn

    name, points = given["network"] or "mlp", data.inputs.shape[1]
    model = mlp(points, 10, 10) if name == "mlp" else small_cnn(side=round(points**0.5))
    rate = LEARNING_RATE[name] if given["learning_rate"] is None else given["learning_rate"]
    return Recipe(model, 1.0, given["steps"], given["clip"], rate, given["sample_rate"])


def _prior(given: Options, recipe: Recipe, data: Examples, candidates: Examples) -> Prior:
    from dprisk.learning import worst_pair_prior

    if given["prior"] == "worst-pair":
        return worst_pair_prior(recipe, data, candidates, given["seed"], given["device"])
    size = len(candidates)
    if (named := named_prior(given["prior"], size, "")) is not None:
        return named
    read = read_prior(given["prior"], None, "--candidates", "")
    require(read.size == size, f"{given['prior']} has {read.size} records: give --candidates {read.size}, not {size}.")
    return read
