"""Pages of source code share the list of all pages that stands beside them.

Sphinx makes it for each page anew, as the page that is shown is marked there. Pages of source code are not in the list;
for those in folders of the same depth it is the same, links included.
"""

from typing import Any

from sphinx.application import Sphinx

BEFORE_THE_THEME = 400


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    made: dict[tuple[Any, ...], str] = {}

    def share(_: Sphinx, page: str, template: str, context: dict[str, Any], *__: object) -> None:
        if not page.startswith("_modules/"):
            return
        make = context["toctree"]

        def toctree(**asked: Any) -> str:
            key = page.count("/"), *sorted(asked.items())
            if key not in made:
                made[key] = make(**asked)
            return made[key]

        context["toctree"] = toctree

    app.connect("html-page-context", share, priority=BEFORE_THE_THEME)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
