"""Studies on top of the library: methods, comparisons, UCI, the paper, its tasks, reports."""
