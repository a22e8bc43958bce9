"""What keeps hosts and devices from work: what people say of them, and quarantines that the farm decides on."""
