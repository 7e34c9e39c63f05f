"""Players: networks, learners, experts."""
