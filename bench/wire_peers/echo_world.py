"""The same echo as a world of whet, served by `whet world serve`."""

from whet.worlds import tool, world


@world("echo")
class Echo:
    """Say something."""

    def tasks(self):
        return [{"number": number} for number in range(8)]

    def brief(self) -> str:
        return "Say something."

    @tool
    def say(self, message: str) -> str:
        """Say it back."""
        return message

    def judge(self) -> bool:
        return False
