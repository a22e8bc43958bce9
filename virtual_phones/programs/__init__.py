"""Programs that run inside a phone: real processes of the host, their streams, what slows down and ends them."""
