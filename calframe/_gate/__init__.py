"""A gate: limits held against every segment, and whether any is broken."""
