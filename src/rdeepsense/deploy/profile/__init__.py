"""What one prediction costs on a device: operations, time, memory and energy."""
