"""One run: its config, its loop, and what it writes."""
