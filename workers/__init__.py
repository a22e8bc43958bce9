"""ACTS: finds devices, holds sessions with them, drives the agent, returns records."""
