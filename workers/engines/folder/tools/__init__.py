"""The tools that run from folders: a file each, with its words and the reader of its output."""
