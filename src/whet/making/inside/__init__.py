"""What runs in the sandbox to try what a model wrote. Modules here are imported by the sandbox's own processes only."""
