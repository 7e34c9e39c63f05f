"""The expert of the multi-level robot, part by part; ``testers`` is where a tester is made."""
