"""Training speed, measured against other people's training loops."""
