"""Settings for the property tests: the same cases on every machine, no deadline on a busy one."""

from hypothesis import settings

settings.register_profile("dprisk", deadline=None, derandomize=True, max_examples=150)
settings.load_profile("dprisk")
