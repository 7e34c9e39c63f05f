"""Godot games: the engine, the instrumented copy of a project, and the way to talk to it."""
