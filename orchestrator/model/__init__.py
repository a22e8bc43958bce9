"""The nouns: frozen, validated, described data. Imports nothing of ours."""
