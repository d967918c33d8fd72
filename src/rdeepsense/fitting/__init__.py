"""A fit without an estimator: specification, target, trainer, result."""
