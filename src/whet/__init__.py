"""whet sharpens LLM agents against worlds that can check their work, and keeps only the changes it can prove."""

__version__ = "0.1.0"
