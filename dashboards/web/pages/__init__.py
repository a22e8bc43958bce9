"""What each page shows: a module a room, from answers to what its template says."""
