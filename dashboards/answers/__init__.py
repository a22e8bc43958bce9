"""The farm's answers, each with its path and its right: the API gives them routes, commands ask them here or there."""
