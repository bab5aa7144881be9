"""The script here needs statsmodels, which the tests do not."""

collect_ignore = ["make_references.py"]
