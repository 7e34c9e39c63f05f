"""Scripted players of kaggriculture."""
