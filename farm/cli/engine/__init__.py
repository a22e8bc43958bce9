"""Commands on models and plans: no device needed, but to tune."""
