"""Separation rank: its bounds, its exact count and its exact measurement."""
