"""Networks of windows as a graph of layers, run with numpy alone."""
