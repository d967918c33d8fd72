"""A page about a fitted model: may it be trusted, where not, and what it goes by."""
