"""What models are told here."""
