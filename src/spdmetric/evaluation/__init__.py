"""Methods, baselines, resumable runs and their statistics: what the paper and comparisons share."""
