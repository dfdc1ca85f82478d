"""The commands `dprisk init`, `dprisk check` and `dprisk report`: a threat model in a file, and the page about it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from dprisk.catalogue import MECHANISMS
from dprisk.cli.audit import EXIT_CODES
from dprisk.cli.options import FILE, Command, Number, option
from dprisk.cli.printing import print_json, say
from dprisk.cli.progress import waiting
from dprisk.cli.tables import show
from dprisk.errors import InputFileError, fail, require
from dprisk.letters import visible
from dprisk.report import make_report, read_audit
from dprisk.report.making import FORMS
from dprisk.taxonomy import json_schema, read_threat_model
from dprisk.taxonomy.keys import LEVELS
from dprisk.taxonomy.plan import make_plan
from dprisk.taxonomy.starter import Starter

DEFAULT = "threat-model.toml"
DATA = option("data", FILE, "A folder in which files that the threat model names are looked for first.")


def init_command() -> Command:
    """`dprisk init`."""
    sections: dict[str, Sequence[click.Parameter]] = {
        "File": [click.Argument(["file"], default=DEFAULT, type=FILE, metavar="[FILE]")],
        "Answer": [option("yes", bool, "Ask nothing: write an example to change.")],
    }
    return Command("init", _init, sections, examples=("survey.toml", "--yes"))


def check_command() -> Command:
    """`dprisk check`."""
    sections: dict[str, Sequence[click.Parameter]] = {
        "File": [click.Argument(["file"], required=False, type=FILE, metavar="FILE"), DATA],
        "Answer": [
            option("json", bool, "Print JSON instead of a table."),
            option("schema", bool, "Print the JSON schema of threat model files instead."),
        ],
    }
    return Command("check", _check, sections, examples=("threat-model.toml", "--schema"))


def report_command() -> Command:
    """`dprisk report`."""
    sections: dict[str, Sequence[click.Parameter]] = {
        "File": [click.Argument(["file"], type=FILE, metavar="FILE"), DATA],
        "Answer": [
            option("out", FILE, f"Where to write the report; its name ends in {', '.join(FORMS)}.", metavar="FILE"),
            option(
                "audit", FILE, "What `dprisk audit --json` wrote about the code: it is shown beside what is proved."
            ),
        ],
    }
    examples = ("threat-model.toml --out report.html", "threat-model.toml --out report.html --audit audit.json")
    return Command("report", _report, sections, examples=examples)


def _init(file: Path, yes: bool) -> None:
    """Write a threat model to start from, by asking.

    The file is commented: every name with what it means and the options that there are.
    """
    require(file.suffix == ".toml", f"{file} must end in .toml.", InputFileError)
    require(not file.exists(), f"{file} is there already; choose another name, or remove it.", InputFileError)
    starter = Starter() if yes else _asked()
    try:
        file.write_text(starter.to_toml(), encoding="utf-8")
    except OSError as problem:
        fail(f"{file} cannot be written: {problem.strerror}.", InputFileError)
    try:
        read_threat_model(file)
    except InputFileError:
        file.unlink()
        raise
    say(f"Wrote {file}. Change it, then `dprisk check {file}` and `dprisk report {file} --out report.html`.")


def _asked() -> Starter:
    known = Starter()
    names = click.Choice([entry.name for entry in MECHANISMS if entry.needs == ("epsilon",)], case_sensitive=False)
    return Starter(
        title=click.prompt("What is it about?", default=known.title),
        mechanism=click.prompt("Which mechanism", default=known.mechanism, type=names),
        epsilon=click.prompt("Which epsilon?", default=known.epsilon, type=Number(float)),
        size=int(click.prompt("How many possible records does a person have?", default=known.size, type=Number(int))),
        attacker=click.prompt("Who might come after it?", default=known.attacker),
        tolerance=click.prompt(
            "What may taking part add at most (0.05 is 50 of 1000)?", default=known.tolerance, type=Number(float)
        ),
        impact=click.prompt("How bad is it if the attacker succeeds", default=known.impact, type=click.Choice(LEVELS)),
    )


def _check(file: Path | None, data: Path | None, json: bool, schema: bool) -> None:
    """Is this threat model whole, and what does it ask?

    Tells each attacker's questions, by which rules they come from the file, and what no bound covers.
    """
    if schema:
        print_json(json_schema())
        return
    if file is None:
        raise click.UsageError("Name the file with the threat model.")
    found = make_plan(_read(file, data))
    print_json(found.to_dict()) if json else show(found)


def _report(file: Path, data: Path | None, out: Path | None, audit: Path | None) -> None:
    """What should we worry about?

    Answers every question of a threat model file, and writes one page that needs nothing else: for people to read,
    question and keep. Without --out the numbers are shown here. With --audit it ends with exit code 1 if the code that
    was audited breaks its claim or the promise of the release, and with 3 if the audit did not decide that.
    """
    if out is not None:
        require(out.suffix in FORMS, f"{out} must end in {', '.join(FORMS[:-1])} or {FORMS[-1]}.", InputFileError)
        require(out.resolve() != file.resolve(), f"{out} is the threat model itself.", InputFileError)
        same = audit is not None and out.resolve() == audit.resolve()
        require(not same, f"{out} is the audit itself.", InputFileError)
    audited = None if audit is None else read_audit(audit)
    with waiting("Assessing"):
        found: Any = make_report(_read(file, data), audited)
        if out is not None:
            found.write(out)
    if out is None:
        show(found)
    else:
        say("\n".join([*map(visible, found.lines()), f"Wrote {out}."]))
    if found.audited is not None:
        click.get_current_context().exit(EXIT_CODES[found.audited.verdict])


def _read(file: Path, data: Path | None) -> Any:
    require(data is None or data.is_dir(), f"There is no folder {data}.", InputFileError)
    return read_threat_model(file, data)
