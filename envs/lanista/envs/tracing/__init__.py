"""Recording which functions of a game are called, step by step."""
