"""Methods side by side on one data set: RDeepSense, its baselines and models of your own."""
