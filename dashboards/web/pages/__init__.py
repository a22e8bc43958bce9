"""The content of each page: a module a room, from answers to what its template says."""
