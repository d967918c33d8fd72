"""What a fit is, typed and without an estimator: specification, target, trainer, result."""
