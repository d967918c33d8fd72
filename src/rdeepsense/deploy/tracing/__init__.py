"""A torch network run once on one row, and what it did as the steps of a graph."""
