"""The fourth question: what should we worry about? Threat models in a file, by the taxonomy of attacks."""

from dprisk.taxonomy.dimensions import DIMENSIONS, Dimension, Option
from dprisk.taxonomy.findings import Answered, Faced, Kept, answer
from dprisk.taxonomy.model import Attacker, Choice, ThreatModel, Universe
from dprisk.taxonomy.plan import Plan, make_plan
from dprisk.taxonomy.reading import read_threat_model
from dprisk.taxonomy.rules import RULES, Question, Rule, questions
from dprisk.taxonomy.schema import json_schema
from dprisk.taxonomy.writing import to_json, to_toml, write_threat_model

__all__ = [
    "DIMENSIONS",
    "RULES",
    "Answered",
    "Attacker",
    "Choice",
    "Dimension",
    "Faced",
    "Kept",
    "Option",
    "Plan",
    "Question",
    "Rule",
    "ThreatModel",
    "Universe",
    "answer",
    "json_schema",
    "make_plan",
    "questions",
    "read_threat_model",
    "to_json",
    "to_toml",
    "write_threat_model",
]
