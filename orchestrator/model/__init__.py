"""The nouns of the farm: data models, frozen, validated and described, and its errors. Imports nothing of ours."""
