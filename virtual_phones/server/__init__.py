"""All phones of a state folder in one process, and what each phone's adbd serves."""
