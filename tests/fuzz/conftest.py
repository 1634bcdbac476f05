"""Folders for the reader fuzzers."""

from fuzz_folders import current_folder_stays_empty, folder_in_memory  # noqa: F401
