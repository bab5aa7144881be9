"""What we claim about speed and derived numbers, each measured by a command here."""
