"""Who is really better: two players against the same opponents, in the same worlds and seats."""
