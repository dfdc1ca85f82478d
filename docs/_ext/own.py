"""What a module only imports is left out of its description before anything is made of it.

Sphinx leaves it out too, unless `__all__` names it, but first it reads the source and makes the signature of each: of
as many again as modules define.
"""

import sys
from typing import Any

from sphinx.application import Sphinx


def skip_imported(app: Sphinx, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Whether to leave out a member; None lets Sphinx decide."""
    here, home = app.env.temp_data["autodoc:module"], getattr(value, "__module__", None)
    if what != "module" or home in (None, here) or hasattr(sys.modules[here], "__all__"):
        return None
    return True


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("autodoc-skip-member", skip_imported)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
