"""Recording which functions of a game written in GDScript are called."""
