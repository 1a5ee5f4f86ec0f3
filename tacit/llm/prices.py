"""Prices of models: those of the user in models.prices, else the built-in list prices.

A model on this machine or in its network costs nothing. The price of a model in neither list is unknown:
None."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from tacit.llm.spending import FREE, Price
from tacit.llm.tiers import determine_tier

# Dollars per million tokens, read and written, as the providers list them. They change: models.prices wins.
BUILT_IN: Mapping[str, Price] = {
    "anthropic:claude-haiku-4-5": Price(1, 5),
    "anthropic:claude-3-5-haiku": Price(0.8, 4),
    "anthropic:claude-3-haiku": Price(0.25, 1.25),
    "anthropic:claude-sonnet-4-5": Price(3, 15),
    "anthropic:claude-sonnet-4": Price(3, 15),
    "anthropic:claude-opus-4-5": Price(5, 25),
    "anthropic:claude-opus-4-1": Price(15, 75),
    "openai:gpt-5": Price(1.25, 10),
    "openai:gpt-5-mini": Price(0.25, 2),
    "openai:gpt-5-nano": Price(0.05, 0.4),
    "openai:gpt-4.1": Price(2, 8),
    "openai:gpt-4.1-mini": Price(0.4, 1.6),
    "openai:gpt-4.1-nano": Price(0.1, 0.4),
    "openai:gpt-4o": Price(2.5, 10),
    "openai:gpt-4o-mini": Price(0.15, 0.6),
    "openai:text-embedding-3-small": Price(0.02, 0),
    "openai:text-embedding-3-large": Price(0.13, 0),
    "gemini:gemini-embedding-001": Price(0.15, 0),
    "gemini-2.5-flash-lite": Price(0.1, 0.4),
    "gemini-2.5-flash": Price(0.3, 2.5),
    "gemini-2.5-pro": Price(1.25, 10),
}
# A model has dated releases; `gpt-5-pro` is not a release of `gpt-5`.
_RELEASE = re.compile(r"(-\d{4,8}(-\d\d-\d\d)?|-latest)?")


def find_price(model: str, environ: Mapping[str, str], prices: Sequence[str] = ()) -> Price | None:
    own_prices = sorted(_parse_prices(prices), key=lambda entry: len(entry[0]), reverse=True)
    for name, price in own_prices:
        if model.startswith(name):
            return price
    if model.startswith("local:") or determine_tier(model, environ) != "cloud":
        return FREE
    bare_name = model.partition("#")[2] or model
    for name, price in BUILT_IN.items():
        if bare_name.startswith(name) and _RELEASE.fullmatch(bare_name, len(name)):
            return price
    return None


def _parse_prices(prices: Sequence[str]) -> Iterator[tuple[str, Price]]:
    for line in prices:
        name, tokens_in, tokens_out = line.split(" ")
        yield name, Price(float(tokens_in), float(tokens_out))
