"""Acts on access: people and their roles, projects, passwords, tokens, links, and webhooks."""
