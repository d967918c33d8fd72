"""Networks of windows as C: their steps, buffers and tables."""
