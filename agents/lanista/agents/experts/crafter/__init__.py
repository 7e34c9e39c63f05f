"""The Crafter expert, part by part; ``testers`` is where a tester is made."""
