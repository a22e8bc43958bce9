"""The hardware of a phone: power, heat, battery, gauge, clocks, power monitor, and their nodes in /sys and /proc."""
