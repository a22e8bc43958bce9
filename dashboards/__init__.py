"""What people look at: the pages of the farm; Prometheus, alert rules and Grafana beside them."""
