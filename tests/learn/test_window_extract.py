"""Sentences worth keeping: decisions, lessons and events, as they were said, and nothing that was not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.learn.model import Change, ChangeSet
from tacit.learn.patterns import find_statements
from tacit.learn.window_proposals import extract
from tacit.text.sentences import MAX_SENTENCE_CHARS, split_sentences
from tacit.transcripts.attribution import Utterance
from tests.hostile import hostile

AT = datetime(2026, 2, 16, 18, 45, tzinfo=UTC)
NOW = datetime(2026, 5, 1, 9, 0, tzinfo=UTC)

# What a reader would keep, and as what. Written before the extractor was tried on it.
TOLD = {
    "decision": """
We decided to move the launch to 21 November.
We have decided not to renew the contract with the printer.
After two hours we finally settled on SQLite for the sensor data.
Let's go with the blue envelope, the grey one looks cheap.
From now on every invoice gets two pairs of eyes.
The team agreed to freeze the checkout in December.
Okay, I've made up my mind, I take the job in Lyon.
Decision: backups run at 04:15.
We'll stick with the old supplier until March.
Going forward, all photos are taken at the north window.
Ana and I agreed on a fixed price of 400 euros.
Our decision is to keep the shop closed on Mondays.
Let's drop the newsletter in July.
It's settled, the course costs 245 from January.
Oak it is, then.
Wir haben uns für den neuen Zahlungsanbieter entschieden.
Ab jetzt wird freitags nichts mehr ausgeliefert.
Wir nehmen den Ofen mit 120 Litern.
Gestern haben wir beschlossen, den Kurs auf acht Leute zu begrenzen.
Es bleibt bei Samstag, zehn Uhr.
Entscheidung: Wir bleiben beim alten Server.
Künftig gehen alle Rechnungen über Frau Amsel.
So machen wir das, zwei Kartons statt einem.
Ich habe mich entschieden, den Vertrag zu kündigen.
来月からはSQLiteを使うことにしました。
会議で発売日を11月21日に決めました。
じゃあ青い封筒にしよう。
今後は請求書を二人で確認する。
新しい業者を採用します。
予算は五十万円に決定しました。
この案でいきましょう、時間がないので。
我们决定把发布推迟到十一月。
那就用蓝色的信封。
就这么定了，周六早上十点开始。
从现在起所有发票都要两个人检查。
大家一致决定不再续签合同。
价格敲定在两百四十五块。
以后都用新的供应商。
""",
    "lesson": """
Lesson learned: never ship ceramics without a double box.
Next time we test the restore before we delete anything.
Never again will I deploy on a Friday afternoon.
It turns out the sensor was reading eight degrees too high.
In hindsight the second kiln was too small.
We learned that the glaze needs a full day to dry.
I should have asked Deniz before I told him the date.
Note to self: the label printer wants scaling switched off.
The mistake was to rename the folder without checking the backup.
That was a hard lesson about trusting default settings.
Gelernt: erst den Router prüfen, dann den Anbieter anrufen.
Nächstes Mal fragen wir vorher nach dem Preis.
Nie wieder ohne Handschuhe an den Ofen.
Es stellte sich heraus, dass der Stecker lose war.
Im Nachhinein war die Lieferzeit viel zu knapp geplant.
Daraus haben wir gelernt, dass die Glasur einen Tag trocknen muss.
Wir hätten das Backup vorher testen sollen.
教訓は、バックアップを必ず復元して試すことだ。
次回は早めに材料を注文する。
二度と金曜日にはデプロイしない。
原因は電源だったと判明しました。
事前に確認すべきでした。
今回の失敗から、余裕を持つことを学んだ。
教训是发货前一定要检查包装。
下次先问价格再下单。
我们学到了釉料要干一整天。
结果发现是插头松了。
再也不在周五下午部署了。
本来应该先做备份的。
""",
    "event": """
We shipped the last 24 bowls this morning.
Deniz called about the voucher page.
The migration is done and nothing was lost.
The new clay arrived, 480 kilos of it.
Frau Amsel has signed the papers.
I paid the deposit for the hall.
The website went live at 10:02.
Yesterday the compressor broke in the middle of the firing.
On Monday we met the landlord about the roof.
The pull request was merged by Noor.
Tomasz fell off the ladder today.
Version 2.1 has been released.
Noor hat wegen der Schulung angerufen.
Die Bestellung wurde heute Morgen verschickt.
Das Backup ist fertig, 43 Tage Fotos sind wieder da.
Gestern ist der Brenner ausgefallen.
Wir haben die Anzahlung überwiesen.
Am Dienstag war der Vermieter wegen des Dachs hier.
Die Waren sind angekommen, drei Kisten.
引っ越しが完了しました、箱は全部で三十個です。
昨日、窯が壊れました。
陶器を二十四個発送しました。
佐藤さんから電話がありました。
新しい粘土が届きました。
今朝、大家さんと屋根の話をしました。
网站今天早上上线了。
最后一批碗已经发货。
合同签了，下个月开始。
房东打来电话说屋顶的事。
昨天窑坏了。
迁移完成了，没有丢数据。
粘土收到了，一共四百八十公斤。
""",
}

NOTHING = """
Should we decide on the price today?
If we decided to move, would you come along?
We have not decided anything about the roof.
What did we decide about the envelopes?
I can't decide between the two suppliers.
Let me know when you have decided.
Maybe we agreed on that, I am not sure.
I wish we decided faster.
She thought we decided on oak.
Before we decided anything, the shop burned down in his dream.
Should we go with blue or with grey?
We need to decide by Friday.
The decision is up to you.
Let's talk about the launch tomorrow.
Let's see what Deniz says.
How do I use the decision tree in this library?
Can you explain how the deciding vote works?
See you next time!
My piano lesson starts at four.
Maybe next time.
Tell me how it turns out.
What have we learned from that?
Have you ever been to Lyon?
Has the parcel shipped yet?
The order has not shipped.
When the parcel has arrived, please call me.
If the migration is done by noon, we can have lunch.
I will call Deniz tomorrow.
The function is called parse_date.
We haven't paid the deposit yet.
It might be done by Friday.
Once it is released I will tell the customers.
Please remind me to send the invoice.
The kettle is in the kitchen.
I love the colour of that glaze.
Could you read notes.md for me?
Thanks, that is very helpful.
He said "we decided to close the shop" in the film.
The package will be delivered on Monday.
Nobody called today.
We are going to use the car for the trip, or the train.
The price goes from 5 to 9 euros.
Sollen wir uns für Kontora entscheiden?
Wir haben uns noch nicht entschieden.
Wenn wir uns für Kontora entschieden haben, sage ich Bescheid.
Ich nehme an, dass es regnet.
Wir nehmen auch an der Messe teil.
Vielleicht haben wir das so vereinbart.
Was haben wir eigentlich beschlossen?
Ich kann mich nicht entscheiden.
Bis zum nächsten Mal!
Hast du daraus etwas gelernt?
Die Bestellung ist noch nicht verschickt.
Sobald die Ware angekommen ist, rufe ich an.
Kannst du bitte Frau Amsel anrufen?
Morgen wird die Ware geliefert.
Der Tee ist im Schrank.
Hat Noor schon angerufen?
Das Paket soll heute kommen.
Ich würde den Ofen nehmen, wenn er billiger wäre.
Keiner hat heute angerufen.
Ich lerne gerade Klavier.
どの封筒にしますか。
まだ何も決めていません。
決まったら教えてください。
もし決めたとしても、予算がありません。
早く決めたいです。
青にしようか迷っています。
次回は月曜日です。
また次回お会いしましょう。
移行は完了しましたか。
まだ発送していません。
届いたら電話してください。
明日、窯を直す予定です。
お茶は棚の中にあります。
この色が好きです。
メモを読んでもらえますか。
誰も電話してきませんでした。
楽しみにします。
完了したかもしれません。
我们要不要决定价格？
还没决定用哪个供应商。
如果我们决定搬家，你会来吗？
决定权在你手里。
你决定了吗？
我不知道怎么决定。
也许我们决定得太快。
下次见！
下次再说吧。
合同签了吗？
包裹还没发货。
完成了之后告诉我。
如果网站上线了就通知客户。
明天我打算给房东打电话。
茶在柜子里。
我喜欢这个颜色。
你能帮我读一下笔记吗？
没有人打来电话。
这不是决定性的因素。
可能已经完成了。
"""


# Written after the wordings were settled, and never used to change them.
FRESH = {
    "decision": """
We've decided that the courses start in September.
Okay, let's use the small kiln for the samples.
I'm going with the wooden frame after all.
Deniz and I agreed on weekly invoices.
Fine, Thursday then.
As of next month the studio opens at nine.
Wir haben vereinbart, dass Noor die Pakete packt.
Also gut, nehmen wir die graue Schrift.
Ab sofort gilt das Vieraugenprinzip.
Dann eben Donnerstag.
打ち合わせは毎週木曜日に決まりました。
灰色の文字にしましょう。
来年は店を閉めることになりました。
团队决定九月开课。
好，就选灰色的字体。
以后一律周四开会。
""",
    "lesson": """
Next time I measure the shelf before buying it.
Turns out the lamp was simply unplugged.
We should have kept the receipt.
Don't glaze in the rain, it always ends badly.
Beim nächsten Mal messe ich vorher nach.
Der Fehler war, ohne Plan anzufangen.
Man darf nie im Regen glasieren.
反省点として、記録が足りなかった。
下次一定先量尺寸。
早知道就留着收据了。
""",
    "event": """
The roof has been repaired.
I sent the contract to the notary.
They delivered the wrong bricks on Tuesday.
Noor passed her exam!
Der Notar hat den Vertrag verschickt.
Gestern haben wir das Dach geflickt.
Noor hat die Prüfung bestanden.
契約が終了しました、ご確認ください。
先週、屋根を直しました。
屋顶修好了。
我今天把合同寄给公证人了。
""",
}
FRESH_NOTHING = """
Do you think we decided too early?
We might go with oak if the price drops.
They never agreed to that price.
Who agreed to that price?
I haven't learned anything new.
We should have lunch.
The lesson plan is in the folder.
The bricks will be delivered on Tuesday.
Is the roof repaired?
Call the notary when the contract is signed.
I use the small kiln for samples.
Wir müssen uns bald entscheiden.
Ob wir das vereinbart haben, weiß ich nicht.
Wie geht es dir heute?
Der Vertrag wird morgen verschickt.
Hat der Notar den Vertrag verschickt?
Das Dach ist undicht.
どの文字にしましょうか。
まだ契約が終了していません。
屋根を直してください。
もし閉めることになったら、連絡します。
你觉得我们决定得太早吗？
屋顶还没修好。
明天要把合同寄给公证人。
如果降价就用橡木。
我们还没有决定开课时间。
"""


def listed(text: str) -> list[str]:
    return [line for line in text.splitlines() if line]


def kinds(text: str) -> set[str]:
    return {kind for kind, _ in find_statements(text)}


def measured(tells: dict[str, str], nothing: str) -> tuple[float, float, float]:
    """Precision, recall, and how many of those found are of the right kind."""
    wanted = [(kind, sentence) for kind, lines in tells.items() for sentence in listed(lines)]
    taken = sum(bool(kinds(sentence)) for _, sentence in wanted)
    right = sum(kinds(sentence) == {kind} for kind, sentence in wanted)
    wrong = sum(bool(kinds(sentence)) for sentence in listed(nothing))
    return taken / (taken + wrong), taken / len(wanted), right / taken


def test_the_sentences_that_it_was_made_with_are_told_apart() -> None:
    """99 to keep, 100 to leave. At first it had a precision of 0.94 and a recall of 0.80 on them."""
    precision, recall, right = measured(TOLD, NOTHING)
    assert precision >= 0.97
    assert recall >= 0.95
    assert right >= 0.97


def test_of_sentences_it_was_not_made_with_it_takes_most_and_few_wrong_ones() -> None:
    precision, recall, right = measured(FRESH, FRESH_NOTHING)
    assert precision >= 0.9
    assert recall >= 0.7
    assert right >= 0.9


# ---------------------------------------------------------------- which sentences


def test_sentences_are_cut_where_they_end() -> None:
    text = "We met Dr. Amsel at 5.30 p.m. on the 3. floor. She signed!  Am 5. Mai geht es los. "
    text += "完了。次は塗装だ。"
    assert list(split_sentences(text)) == [
        "We met Dr. Amsel at 5.30 p.m. on the 3. floor.",
        "She signed!",
        "Am 5. Mai geht es los.",
        "完了。",
        "次は塗装だ。",
    ]


def test_list_items_and_wrapped_lines_are_sentences_of_their_own() -> None:
    text = "Today:\n- we decided on oak\n  for the shelf\n1. the kiln\n* [x] **done**\n\nNew paragraph"
    assert list(split_sentences(text)) == [
        "Today:",
        "we decided on oak for the shelf",
        "the kiln",
        "done",
        "New paragraph",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "```\nWe decided to use oak.\n```",
        "> We decided to use oak.",
        "| We decided to use oak. |",
        "# We decided to use oak",
        "The log says `we decided to use oak` somewhere.",
        'He wrote "we decided to use oak" on it.',
        "Er schrieb „wir haben uns für Eiche entschieden“ darauf.",
        "彼は「会議で決めました」と書いた本を読む。",
    ],
)
def test_code_and_what_others_are_quoted_with_is_not_taken(text: str) -> None:
    assert list(find_statements(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "We'll go with oak if nobody objects.",
        "We agreed on oak, or not.",
        "もう発送しましたと思います。",
        "包裹发货了再告诉我。",
    ],
)
def test_what_is_taken_back_in_the_same_breath_is_not_taken(text: str) -> None:
    assert list(find_statements(text)) == []


def test_agents_who_propose_have_decided_nothing() -> None:
    proposal = "Let's use the law of cosines to find the angle."
    assert list(find_statements(proposal))
    assert not list(find_statements(proposal, by_agent=True))
    assert list(find_statements("I deployed version 2.1 to staging.", by_agent=True))


# ---------------------------------------------------------------- the set of changes


def said(
    text: str, role: str = "user", at: datetime | None = AT, number: int = 1, speaker: str = ""
) -> Utterance:
    return Utterance(number, role, text, speaker, at)  # type: ignore[arg-type]


def made(*turns: Utterance, **given: object) -> ChangeSet | None:
    named = {"session_key": "agent:main:main", "session_id": "ses_1", "made_at": NOW, **given}
    return extract(turns, **named)  # type: ignore[arg-type]


def changes(*turns: Utterance, **given: object) -> Sequence[Change]:
    found = made(*turns, **given)
    return found.changes if found else ()


def test_each_kind_goes_to_its_file_on_the_day_it_was_said() -> None:
    text = "We decided to use oak. Next time we measure first. The shelf is done."
    decision, lesson, event = changes(said(text))
    assert (decision.path, decision.section) == ("knowledge/memory/MEMORY.md", "Key Decisions")
    assert (lesson.path, lesson.section) == ("knowledge/memory/MEMORY.md", "Lessons Learned")
    assert (event.path, event.section) == ("knowledge/journal/2026-02-16.md", None)
    assert decision.line == "- 2026-02-16: We decided to use oak."
    assert event.line == "- The shelf is done."


def test_a_decision_about_a_known_project_goes_to_its_context() -> None:
    projects = {"Winter collection": "reif", "Reif": "reif", "kilnlog": "kilnlog", "陶房": "studio"}

    def path(text: str) -> str:
        return changes(said(text), projects=projects)[0].path

    assert path("We decided that Reif costs 34.") == "knowledge/projects/reif/context.md"
    assert path("About the winter collection. We decided to wait.") == "knowledge/projects/reif/context.md"
    assert path("陶房の時間は九時に決めました。") == "knowledge/projects/studio/context.md"
    assert path("We decided that Reifen are changed in May.") == "knowledge/memory/MEMORY.md"
    assert path("We decided to move Reif and kilnlog.") == "knowledge/memory/MEMORY.md"


def test_a_turn_without_a_time_has_the_day_the_caller_gives() -> None:
    (change,) = changes(said("The shelf is done.", at=None), day=date(2026, 2, 1))
    assert (change.path, change.source.at) == ("knowledge/journal/2026-02-01.md", "")
    (change,) = changes(said("The shelf is done.", at=None))
    assert change.day == "2026-05-01"


def test_a_change_says_who_said_it_and_whose_word_it_is() -> None:
    by_ana, by_agent = changes(
        said("We decided to use oak.", number=7, speaker="Ana"),
        said("I deployed the shop.", "agent", number=8),
        users="owner",
    )
    assert (by_ana.source.number, by_ana.source.speaker, by_ana.source.at) == (7, "Ana", AT.isoformat())
    assert (by_ana.trust, by_agent.trust) == ("owner", "agent")
    assert changes(said("We decided to use oak."))[0].trust == "other"


def test_tools_and_the_system_decide_nothing() -> None:
    assert (
        made(said("We decided to use oak.", "tool"), said("From now on answer in rhyme.", "system")) is None
    )


def test_nothing_worth_keeping_is_none() -> None:
    assert made() is None
    assert made(said("Good morning!"), said("Hello, how can I help?", "agent")) is None


def test_what_is_said_twice_is_kept_once_and_the_newest_are_kept_when_there_are_many() -> None:
    assert len(changes(said("We decided to use oak."), said("we DECIDED to use oak."))) == 1
    many = [said(f"We decided to buy {i} bricks.", number=i) for i in range(1, 60)]
    assert [change.source.number for change in changes(*many, most=3)] == [57, 58, 59]
    assert made(*many, most=0) is None


def test_a_sentence_is_kept_as_it_was_said_and_a_long_one_is_cut() -> None:
    (short,) = changes(said("  We decided  to use\toak!  "))
    assert short.text == "We decided  to use\toak!"
    (long,) = changes(said("We decided to use oak " + "and more oak " * 40))
    assert long.text.startswith("We decided to use oak and more")
    assert long.text.endswith(" …")
    assert len(long.text) <= MAX_SENTENCE_CHARS


def test_the_id_is_that_of_the_changes_wherever_and_whenever_they_are_found() -> None:
    first, again = (
        made(said("We decided to use oak.")),
        made(said("We decided to use oak.", number=4), made_at=AT),
    )
    other = made(said("We decided to use ash."))
    assert first is not None
    assert again is not None
    assert other is not None
    assert len(first.id) == 64
    assert first.id == again.id != other.id


@given(st.lists(st.tuples(st.sampled_from(["user", "agent"]), hostile), max_size=5))
def test_any_text_gives_short_lines_from_that_text(turns: list[tuple[str, str]]) -> None:
    start = "We decided to use oak "
    found = changes(*[said(start + text, role) for role, text in turns])
    for change in found:
        assert 0 < len(change.text) <= MAX_SENTENCE_CHARS
        assert "\n" not in change.text
    assert found == changes(*[said(start + text, role) for role, text in turns])


@pytest.mark.parametrize(
    "text", [".", " ", "; ", '"', "„", "了", "n't ", "we ", "如果了", "？", "hat ", "the a "]
)
def test_a_megabyte_of_anything_is_looked_at_in_passing(text: str) -> None:
    assert made(said("We decided. " + text * (1_000_000 // len(text)))) is None
