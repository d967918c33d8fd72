"""A page about a fitted model: its calibration, where it fails, and which inputs matter."""
