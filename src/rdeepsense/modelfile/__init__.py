"""Files of models: the container, checks of its header, tensors. Nothing in them can execute."""
