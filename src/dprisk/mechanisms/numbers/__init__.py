"""Noise on a number: continuous, on whole numbers, for records that are numbers themselves."""
