"""`deepwide bounds` and `deepwide rank`."""
