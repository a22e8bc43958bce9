"""The farm's web parts: the pages for people on this machine; files by their hash for hosts, over HTTPS."""
