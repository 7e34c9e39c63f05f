"""Games and the recording of their function calls."""
