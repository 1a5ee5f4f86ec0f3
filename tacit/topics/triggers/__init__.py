"""The types of triggers. A new one is a subclass of `TriggerType` in one of these modules, or in its own, and
one line below: parsing, matching, similarity and `tacit topics` follow from it."""

from __future__ import annotations

from collections.abc import Mapping

from tacit.topics.triggers.base import TriggerType
from tacit.topics.triggers.content import CodeTrigger, LanguageTrigger, SentimentTrigger, UrgencyTrigger
from tacit.topics.triggers.events import CronTrigger, WebhookTrigger
from tacit.topics.triggers.expressions import GlobTrigger, PatternTrigger, UrlTrigger
from tacit.topics.triggers.words import KeywordTrigger, MentionTrigger

TRIGGER_TYPES: Mapping[str, type[TriggerType]] = {
    trigger_type.name: trigger_type
    for trigger_type in (
        PatternTrigger,
        GlobTrigger,
        KeywordTrigger,
        CodeTrigger,
        LanguageTrigger,
        MentionTrigger,
        UrlTrigger,
        UrgencyTrigger,
        SentimentTrigger,
        WebhookTrigger,
        CronTrigger,
    )
}
TYPES_BY_ALIAS: Mapping[str, type[TriggerType]] = {
    alias: trigger_type
    for trigger_type in TRIGGER_TYPES.values()
    for alias in (trigger_type.name, *trigger_type.aliases)
}

__all__ = [
    "TRIGGER_TYPES",
    "TYPES_BY_ALIAS",
    "PatternTrigger",
    "SentimentTrigger",
    "TriggerType",
    "WebhookTrigger",
]
