"""Studies beside the code of their papers."""
