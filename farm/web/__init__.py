"""The farm's web part: what machines beside this one fetch from the farm over HTTPS. Now: files by their hash."""
