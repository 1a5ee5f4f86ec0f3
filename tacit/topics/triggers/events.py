"""Triggers by events that start a turn instead of a message: webhooks and schedules."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from tacit.topics.model import Trigger
from tacit.topics.triggers.base import MatchInput, TriggerEntry, TriggerType, preview, show

_NAMED_SCHEDULES = {
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}  # fmt: skip


class WebhookTrigger(TriggerType):
    """An event that a host reports; `*` stands for any source or event."""

    name = "webhook"
    advice = "Write for instance source: shop and event: order_created, or '*' for any."
    is_event = True

    @classmethod
    def read(cls, entry: TriggerEntry) -> Iterator[Trigger]:
        source = entry.text("source")
        if source:
            yield entry.trigger(source=source, event=entry.text("event"))
        else:
            entry.skip("a webhook needs `source`", cls.advice)

    @classmethod
    def describe(cls, trigger: Trigger) -> str:
        return f"{cls.name} {trigger.source}/{trigger.event or '*'}"

    @classmethod
    def words(cls, trigger: Trigger) -> Iterator[str]:
        yield f"{trigger.source} {trigger.event}"

    def find(self, source: MatchInput) -> Iterator[tuple[int, str]]:
        event = source.event
        if event is None or event.type != self.name:
            return
        for rule in self._rules:
            if _is_expected(rule.trigger.source, event.source) and _is_expected(
                rule.trigger.event or "*", event.event
            ):
                yield rule.position, preview(f"webhook {event.source}/{event.event}")


def _is_expected(expected: str, actual: str) -> bool:
    return expected == "*" or expected.casefold() == actual.casefold()


class CronTrigger(TriggerType):
    """A schedule of five fields: minute, hour, day, month, weekday."""

    name = "cron"
    aliases = ("schedule",)
    advice = "Write five fields: minute, hour, day, month, weekday, such as '0 8 * * 1-5'."
    is_event = True

    @classmethod
    def read(cls, entry: TriggerEntry) -> Iterator[Trigger]:
        text = entry.text("schedule", "cron", "match")
        schedule = _NAMED_SCHEDULES.get(text.lower(), text)
        fault = _find_fault(schedule)
        if fault:
            entry.skip(fault, cls.advice)
        else:
            yield entry.trigger(schedule=schedule)

    @classmethod
    def describe(cls, trigger: Trigger) -> str:
        return f"{cls.name} {trigger.schedule}"

    def find(self, source: MatchInput) -> Iterator[tuple[int, str]]:
        event = source.event
        topics = set[str]()  # the event does not say which of several schedules came due
        for rule in self._rules if event is not None and event.type == self.name else ():
            if event is not None and event.topic == rule.topic.name and event.topic not in topics:
                topics.add(event.topic)
                yield rule.position, f"schedule {rule.trigger.schedule}"


def _find_fault(schedule: str) -> str:
    """Why the schedule is invalid; empty if it is valid."""
    from cronsim import CronSim, CronSimError

    if not schedule:
        return "a cron trigger needs `schedule`"
    if len(schedule) > 200 or len(schedule.split()) != 5:
        return f"the schedule {show(schedule)} does not have five fields"
    try:
        CronSim(schedule.upper(), datetime(2026, 1, 1))  # noqa: DTZ001 - any moment would do
    except CronSimError as error:
        return f"the schedule {show(schedule)} is not possible: {str(error).lower()}"
    return ""
