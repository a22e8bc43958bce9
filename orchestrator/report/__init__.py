"""Results for people and programs: console tables, a self-contained HTML page, JSON."""
