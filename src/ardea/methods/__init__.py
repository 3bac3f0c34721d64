"""What a method is made of: thresholds, and the task that runs, screens and judges a fit."""
