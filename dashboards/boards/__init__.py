"""Grafana's dashboards as code: `make dashboards` writes their JSON into `dashboards/grafana/`."""
