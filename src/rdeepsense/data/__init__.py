"""Tables before they are rows of a fit: checks, names, scaling, splits, Parquet streams."""
