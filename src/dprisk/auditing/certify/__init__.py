"""From what runs gave to a certified epsilon."""
