"""Other wordings of schemas: back-translation, corruption, composed variants, and statistics."""
