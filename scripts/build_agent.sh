#!/bin/sh
exec .venv/bin/python -m device_agent.build
