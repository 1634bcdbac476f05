"""Schemas as tools of language models: definitions, requests, and calls as states."""
