"""Prices in a shop that has its own way of writing them."""

from collections.abc import Iterator

import whet


@whet.world("shop_prices")
class ShopPrices:
    """Write amounts as this shop writes them: 3.50 is '3 crowns 50'."""

    def __init__(self, count: int = 60) -> None:
        self.count = count

    def tasks(self) -> Iterator[dict[str, str]]:
        for number in range(self.count):
            crowns, cents = 1 + number % 17, 5 * (number % 19)
            yield {"id": f"price-{number}", "text": f"{crowns}.{cents:02d}", "article": str(number)}

    def brief(self, task: whet.Task) -> str:
        return f"Write the price of article {task.inputs['article']}: {task.inputs['text']}"

    def judge(self, task: whet.Task, answer: str) -> whet.Verdict:
        crowns, cents = str(task.inputs["text"]).split(".")
        right = f"{crowns} crowns {int(cents)}"
        passed = answer.strip() == right
        return whet.Verdict(
            passed, float(passed), "" if passed else "form: not how this shop writes it", reference=right
        )
