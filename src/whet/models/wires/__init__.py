"""Wire formats: what is said to a model endpoint and what it says back, as bytes.

This room is pure. It knows nothing of connections, credentials, limits or money.
"""

from whet.models.wires.anthropic import AnthropicWire
from whet.models.wires.base import StreamDecoder, Wire
from whet.models.wires.openai import Auth, OpenAIWire, Thinking, TokenLimit

__all__ = ["AnthropicWire", "Auth", "OpenAIWire", "StreamDecoder", "Thinking", "TokenLimit", "Wire"]
