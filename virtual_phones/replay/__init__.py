"""Phones that replay what a real phone did."""
