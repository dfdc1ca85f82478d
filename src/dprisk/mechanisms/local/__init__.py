"""Local protocols: what one person's device reports."""
