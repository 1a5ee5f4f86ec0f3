"""What the sessions of a home may see: the policy, with the senders seen in each session before."""

from __future__ import annotations

from tacit.config import Config
from tacit.home.layout import Home
from tacit.search.model import Scope
from tacit.sessions.agents import resolve_key
from tacit.sessions.policy import SessionProfile, resolve_profile, sender_name
from tacit.sessions.senders import Senders


class SessionProfiles:
    def __init__(self, home: Home, config: Config) -> None:
        self._config, self._senders = config, Senders(home)

    def profile_of(
        self,
        session_key: str,
        *,
        agent: str | None = None,
        sender: str = "",
        trigger: str = "",
        trial: bool = False,
    ) -> SessionProfile:
        """What a session may see, and by which rule. In a session that may mix several senders the sender is
        remembered, unless it is a trial."""
        key, sender_id = resolve_key(session_key, agent), sender_name(sender)
        senders: frozenset[str] = frozenset()
        if resolve_profile(key, self._config).kind.is_main:
            senders = self._senders.seen(key, "" if trial else sender_id)
        return resolve_profile(
            key, self._config, agent=agent, sender=sender_id, trigger=trigger, senders=senders
        )

    def scope_of(self, session_key: str) -> Scope:
        """What a session may search."""
        return self.profile_of(session_key).scope

    def senders_of(self, session_key: str) -> frozenset[str]:
        """The senders seen so far in a session that may mix several."""
        return self._senders.seen(session_key, "")
