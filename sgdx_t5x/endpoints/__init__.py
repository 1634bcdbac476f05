"""Requests with tools, asked of an endpoint: `sgdx run`."""
