"""A script a version; its number is that of `SCHEMA_VERSION`."""
