"""Models in life, on real data: sensors that drift, people and records never trained on."""
