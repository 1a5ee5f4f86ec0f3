"""Which lines say the same, and which one strikes out another: wrongly struck out is worse than both kept."""

from __future__ import annotations

import pytest

from tacit.text.statements import contradicts, says_the_same


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The bowl costs 46 €.", "The bowl costs 49 €."),
        ("The bowl costs 46 €.", "The bowl now costs 49 € because clay got dearer."),
        ("Glaze firings start at 19:30 at the latest.", "Glaze firings start at 18:30 at the latest."),
        ("Lena has swimming lessons on Tuesday at 16:00.", "Lena has swimming lessons on Thursday at 16:00."),
        ("From now on we deploy on Fridays.", "From now on we deploy on Mondays."),
        ("The launch of Reif is on 14 November at 10:00.", "The launch of Reif is on 21 November at 10:00."),
        ("We use pnpm for the frontend.", "We no longer use pnpm for the frontend."),
        ("We go with Hetzner for hosting.", "We switched from Hetzner to Netcup for hosting."),
        ("The shop is open on Sunday mornings.", "The shop is not open on Sunday mornings."),
        ("Pakete gehen mit der Post nach Wien.", "Pakete gehen nicht mehr mit der Post nach Wien."),
    ],
)
def test_another_value_a_change_or_a_denial_of_the_same_contradicts(old: str, new: str) -> None:
    assert contradicts(new, old)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The staging server runs on port 8080.", "The production server runs on port 8081."),
        ("Der Backup-Server läuft auf Port 8443.", "Der Mail-Server läuft auf Port 9443."),
        (
            "The API limit for the free plan is 100 requests.",
            "The API limit for the pro plan is 5000 requests.",
        ),
        ("The bowl costs 46 €.", "The large bowl costs 52 €."),
        (
            "Lena has swimming lessons on Tuesday at 16:00.",
            "Jonas has swimming lessons on Thursday at 17:00.",
        ),
        ("Release 2.3.0 is due on 4 May.", "Release 2.4.0 is due on 8 June."),
        ("We use Postgres for the shop database.", "The kiln database now uses Postgres for the logs."),
        ("We decided to use tabs in Python.", "We decided to use tabs in Go instead of spaces."),
        ("From now on we deploy the shop with Docker.", "From now on we test the shop with Docker."),
        ("We decided to drop Redis.", "We decided to drop Kafka."),
    ],
)
def test_another_thing_with_another_value_contradicts_nothing(old: str, new: str) -> None:
    assert not contradicts(new, old)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The shop is open on Sunday.", "The shop is not open on Sunday."),
        ("Noor likes coriander.", "Noor doesn't like coriander."),
        ("Katrin mag Koriander.", "Katrin mag keinen Koriander."),
        ("We ship to Germany.", "We ship from Germany."),
        ("The firing starts at 19:30.", "The firing starts at 30:19."),
    ],
)
def test_what_denies_or_turns_round_does_not_say_the_same(one: str, other: str) -> None:
    assert not says_the_same(one, other)
    assert says_the_same(one, one.upper())
