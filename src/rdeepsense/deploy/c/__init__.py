"""A folded model as C99 source, for firmware and apps."""
