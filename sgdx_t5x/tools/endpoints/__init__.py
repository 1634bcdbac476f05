"""Sends requests with tools to an endpoint: `sgdx tools run`."""
