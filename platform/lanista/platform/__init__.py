"""Command line, Ray actors, Tune sweeps and MLflow."""
