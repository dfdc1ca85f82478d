"""Reports of the example threat models, made when the pages are built and put beside them."""

from importlib import resources
from pathlib import Path
from typing import Any

from dprisk.report import make_report
from dprisk.taxonomy import read_threat_model

EXAMPLES = ("clinic", "births", "telemetry", "training", "hours", "attaxonomy")


def write_reports(app: Any, problem: Exception | None) -> None:
    """Write them into the folder `reports` of the built pages."""
    if problem is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir) / "reports"
    folder.mkdir(exist_ok=True)
    with resources.as_file(resources.files("dprisk") / "examples") as examples:
        for name in app.config.example_reports:
            make_report(read_threat_model(examples / f"{name}.toml")).write(folder / f"{name}.html")


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_config_value("example_reports", list(EXAMPLES), "html")
    app.connect("build-finished", write_reports)
    return {"parallel_read_safe": True}
