"""Whom an audit suspects, and how it reads outputs."""
