"""The parts that agents are made of: encoders of observations and call stacks, a transformer."""
