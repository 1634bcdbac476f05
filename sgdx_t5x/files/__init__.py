"""Files: validated reading, atomic writing, locks, and inputs that no output overwrites."""

from sgdx_t5x.files.reading import (
  decode_json,
  decode_lines,
  is_number,
  is_text,
  json_type,
  not_found,
  read_input,
)
from sgdx_t5x.files.writing import (
  atomic_folder,
  atomic_write,
  check_folder,
  is_folder_name,
  json_line,
  list_files,
  writing_fix,
)

__all__ = [
  "atomic_folder",
  "atomic_write",
  "check_folder",
  "decode_json",
  "decode_lines",
  "is_folder_name",
  "is_number",
  "is_text",
  "json_line",
  "json_type",
  "list_files",
  "not_found",
  "read_input",
  "writing_fix",
]
