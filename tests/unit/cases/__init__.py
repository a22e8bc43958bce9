"""Inputs that once failed, kept beside the checkout; where their folder is absent, the tests are skipped."""
