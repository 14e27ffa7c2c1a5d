"""What a language model says of its own answers, as numbers."""
