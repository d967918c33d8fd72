"""Methods compared on data sets with fixed splits: trials, their statistics, resumable runs."""
