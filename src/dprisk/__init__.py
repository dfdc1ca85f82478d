"""What a differentially private release really risks, and how much noise it really needs.

>>> from dprisk import GRR, Prior, Threat, assess
>>> print(assess(GRR(100, epsilon=2.0), Threat(Prior.uniform(100))).sentence())
An attacker can be right about 69 of 1000 people who took part, and about 10 of 1000 who did not: taking part adds 59.

Everything here is loaded when it is first used; `__init__.pyi` says where it lives.
"""

import lazy_loader

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
