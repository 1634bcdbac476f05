"""Suites: tools of one's own, cases, and rewordings."""
