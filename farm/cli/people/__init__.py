"""Commands on people, their tokens and projects."""
