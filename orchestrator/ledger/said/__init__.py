"""The bars to work: what people say of hosts and devices, and quarantines that the farm decides on."""
