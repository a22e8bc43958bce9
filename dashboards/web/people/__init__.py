"""People on the pages: how they log in, how often they may try, and what is public."""
