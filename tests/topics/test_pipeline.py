"""The three tiers together, and who wakes in the end."""

from __future__ import annotations

from tacit.topics.activation import GatedActivator
from tacit.topics.model import Event, Stimulus, Topic, Trigger
from tacit.topics.pipeline import Moment, WatcherPipeline, WatchResult

NOW = Moment("2026-11-02T08:00:00.000000+01:00")


def topic(name: str, *triggers: Trigger, **more: object) -> Topic:
    fields = {"title": name, "description": f"all about {name}", "body": f"How to handle {name}.", **more}
    return Topic(name, f"topics/{name}.md", triggers=triggers, **fields)  # type: ignore[arg-type]


def pattern(match: str, scope: str = "input", hint: str = "") -> Trigger:
    return Trigger("pattern", match, scope, correction_hint=hint)  # type: ignore[arg-type]


def process(topics: list[Topic], text: str, *, event: Event | None = None, **more: object) -> WatchResult:
    pipeline = WatcherPipeline(topics, GatedActivator())
    return pipeline.process(Stimulus(text, event=event), NOW, **more)  # type: ignore[arg-type]


def names(watched: WatchResult) -> list[str]:
    return [one.topic.name for one in watched.activations]


def test_the_more_important_topic_comes_first() -> None:
    topics = [
        topic("low", pattern("kiln"), activation="auto", priority="low"),
        topic("critical", pattern("kiln"), activation="auto", priority="critical"),
        topic("high", pattern("kiln"), activation="auto", priority="high"),
    ]
    assert names(process(topics, "the kiln is hot")) == ["critical", "high", "low"]


def test_a_topic_that_a_session_may_not_see_leaves_no_trace() -> None:
    topics = [
        topic("secret", pattern("kiln"), activation="auto"),
        topic("open", pattern("kiln"), activation="auto"),
    ]
    watched = process(topics, "the kiln is hot", allowed=lambda one: one.name != "secret")
    assert names(watched) == ["open"]
    assert [decision.topic_name for decision in watched.decisions] == ["open"]


def test_what_came_near_without_a_trigger_is_kept_as_a_decision() -> None:
    kiln = topic("kiln", pattern("nothing like it"), description="kiln firing glaze programme temperature")
    watched = process([kiln], "which glaze programme and temperature for the kiln firing")
    assert names(watched) == []
    (decision,) = watched.decisions
    assert (decision.outcome, decision.tier1_matched) == ("dropped", False)
    assert decision.tier2_score >= 0.3


def test_the_mood_of_a_message_wakes_a_topic_that_asks_for_it() -> None:
    calm = topic("calm", Trigger("sentiment", words=("negative",)), activation="auto")
    assert names(process([calm], "This is terrible, I hate it, everything is broken and awful!")) == ["calm"]
    assert names(process([calm], "What a wonderful day, I love it, thank you!")) == []


def test_a_schedule_wakes_its_own_topic_and_no_other() -> None:
    brief = topic("brief", Trigger("cron", schedule="0 7 * * *"), activation="auto")
    kiln = topic("kiln", pattern("kiln"), activation="auto")
    watched = process([brief, kiln], "Write the brief; mention the kiln.", event=Event("cron", topic="brief"))
    assert names(watched) == ["brief"]


def test_a_topic_asked_for_by_name_wakes_even_when_it_is_manual() -> None:
    assert names(process([topic("review", activation="manual")], "hello", woken=("review",))) == ["review"]


def test_a_correction_speaks_once_and_then_pauses_with_or_without_a_hint() -> None:
    for hint in ("Use print().", ""):
        strict = topic(
            "python", pattern("print ", "output", hint), steering=True, steering_pause=3, activation="auto"
        )
        pipeline = WatcherPipeline([strict], GatedActivator())
        said = "print 'hello'"
        assert names(pipeline.corrections(said, NOW, spoken=dict)) == ["python"]
        assert names(pipeline.corrections(said, NOW, spoken=lambda: {"python": 3})) == []
        assert names(pipeline.corrections(said, NOW, spoken=lambda: {"python": 4})) == ["python"]
