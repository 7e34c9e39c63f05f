"""Rule search."""
