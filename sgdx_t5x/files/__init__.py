"""Files: `reading` validates, `writing` is atomic, `locks` keeps processes apart."""
