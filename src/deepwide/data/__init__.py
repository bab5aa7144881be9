"""Text in, memory-mapped tokens out."""
