"""The folded model: plain dense layers and a few numbers, run with numpy alone."""
