"""What is minimized: misalignment of tangent vectors with labels, whole or by mini-batches."""
