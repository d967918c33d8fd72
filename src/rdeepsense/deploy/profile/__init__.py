"""What a prediction costs: time, memory, instructions, energy, beside other methods."""
