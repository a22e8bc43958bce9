"""The farm to look at: its pages; Prometheus, alert rules and Grafana beside them."""
