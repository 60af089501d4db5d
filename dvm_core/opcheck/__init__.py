"""`dvm doctor --ops`: every op of this build against float64 NumPy, against itself in every mode, and against PyTorch and MindSpore."""
