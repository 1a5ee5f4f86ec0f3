"""How messages sound. The sentences are invented; + pleased, - upset, 0 neither."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.text.sentiment import MAX_CHARS, MOODS, measure_mood, score_agreement
from tests.hostile import hostile

SENTENCES = """
+ That worked at once, thank you so much!
+ What a lovely surprise, I'm really happy with it.
+ The new layout is excellent.
+ Not bad at all, I must say.
+ No problem, take your time.
+ I was worried at first, but the result is wonderful.
+ we won the tender 🎉
+ Great news: the tests pass and everybody is relieved.
+ I love how calm the house is in the morning.
- This is unacceptable, I have been waiting for three weeks.
- The printer is broken again and I'm fed up.
- it doesn't work and nobody helps
- I'm not happy with the last draft.
- Nice colours, but the app crashes every time I open it.
- WHERE IS MY ORDER???
- I am so disappointed in all of you :(
- The food was awful!!!
- She's been crying since the call 😢
0 The meeting is at ten in the small room.
0 Please send me the list of participants.
0 Which version of Python does the server run?
0 Turn left after the bridge and go on for two miles.
+ Das hat super geklappt, vielen Dank!
+ Ich freue mich sehr auf Samstag.
+ Die Lampe ist wunderschön und ausgezeichnet verarbeitet, ich liebe sie.
+ Gar nicht schlecht für den ersten Versuch.
+ Kein Problem, das machen wir gerne.
+ Der Anfang war mühsam, aber jetzt bin ich begeistert.
+ Endlich geschafft, ich bin so erleichtert!
- Ich bin stinksauer und enttäuscht, so eine Frechheit.
- Das funktioniert nicht und niemand meldet sich.
- Die Heizung ist schon wieder kaputt!!
- Das gefällt mir überhaupt nicht.
- Leider war die Ware beschädigt, ich bin sehr unzufrieden.
- Schöne Farbe, aber die Qualität ist furchtbar.
- Was soll der Mist, das nervt gewaltig.
- Ich bin traurig und müde 😞
0 Liebe Frau Kaya, die Sitzung beginnt um neun.
0 Der Zug fährt von Gleis vier ab.
0 Mit freundlichen Grüßen, Jan Brandt
0 Welche Größe haben die Schrauben?
+ ありがとうございます、とても助かりました。
+ 新しいデザインは本当に素晴らしいです。
+ 無事に届きました。嬉しいです！
+ 最初は不安でしたが、結果は最高です。
+ 心配ありません、順調です。
+ 息子が試験に合格しました🎉
+ 使いやすくて気に入っています。
- 対応がひどいです。もう二度と頼みません。
- 商品が壊れていて、とても残念です。
- 三週間待っても届いていません。困っています。
- 全然嬉しくないです。
- この結果には満足していません。
- デザインはきれいですが、動きが遅いです。
- 何度も同じ間違いをされて、腹が立ちます！！
- 疲れました。もう無理です😭
0 会議は十時に小さい部屋で始まります。
0 駅から徒歩五分です。
0 この部品の長さは三センチです。
0 資料を二部印刷してください。
+ 太好了，谢谢你的帮助！
+ 这次的服务非常满意，很专业。
+ 孩子们玩得特别开心。
+ 没问题，明天可以完成。
+ 开始有点紧张，但是结果很完美。
+ 味道不错，推荐给大家👍
+ 终于搞定，一切顺利。
- 态度太差，我要投诉！
- 等了三个星期还没有回复，非常失望。
- 这个软件又卡死，真让人生气。
- 我对这次的结果不满意。
- 颜色很漂亮，但是质量糟糕。
- 我今天很难过，什么都不想做😢
- 这种东西就是垃圾！！！
- 不喜欢这个安排，太麻烦。
0 会议十点在小会议室开始。
0 请把名单发给我。
0 从车站走路五分钟。
0 麻烦您把文件打印两份。
"""
CASES = [(line[0], line[2:]) for line in SENTENCES.strip().splitlines()]


@pytest.mark.parametrize(("sign", "sentence"), CASES)
def test_a_sentence_sounds_pleased_upset_or_neither(sign: str, sentence: str) -> None:
    felt = measure_mood(sentence)

    assert {"+": felt > 0.2, "-": felt < -0.2, "0": abs(felt) < 0.1}[sign], felt


@pytest.mark.parametrize(
    ("weaker", "stronger"),
    [
        ("The room is bad.", "The room is very bad."),
        ("The room is bad.", "The room is bad!!!"),
        ("The room is bad, says Tom.", "THE ROOM IS BAD, SAYS TOM."),
        ("Das Essen war schlecht.", "Das Essen war sehr schlecht."),
        ("残念です。", "とても残念です！！"),
        ("结果很差。", "结果很差！！！"),
        ("that is bad", "that is bad 😡"),
    ],
)
def test_emphasis_makes_it_stronger(weaker: str, stronger: str) -> None:
    assert measure_mood(stronger) < measure_mood(weaker) < 0


def test_what_comes_after_a_but_outweighs_what_comes_before() -> None:
    assert measure_mood("It is beautiful, but broken.") < 0 < measure_mood("It is broken, but beautiful.")


def test_one_word_in_a_long_text_says_less_than_alone() -> None:
    long = "The second part of the report describes how the bridge was measured. " * 8

    assert -0.4 < measure_mood(f"{long} The weather was bad. {long}") < 0
    assert measure_mood("The weather was bad.") <= -0.45


def test_a_comma_ends_what_a_no_speaks_about() -> None:
    assert measure_mood("No, good as it is.") > 0 > measure_mood("no good as it is")


def test_umlauts_count_however_they_are_composed() -> None:
    assert measure_mood("scho\u0308n") == measure_mood("schön") > 0


@pytest.mark.parametrize(
    ("felt", "asked", "expected"),
    [
        (-0.6, ("negative",), 0.6),
        (-0.6, ("positive",), 0.0),
        (0.4, ("positive", "negative"), 0.4),
        (-0.6, ("Angry",), 0.4),
        (-0.3, ("angry",), 0.0),
        (-0.9, ("wistful",), 0.0),
        (-0.9, (), 0.0),
    ],
)
def test_a_topic_can_ask_for_moods(felt: float, asked: tuple[str, ...], expected: float) -> None:
    assert score_agreement(felt, asked) == pytest.approx(expected)


@given(st.one_of(hostile, st.text("不な!?好bad not ない😡", max_size=200)))
def test_any_text_has_a_mood_between_minus_one_and_one(text: str) -> None:
    felt = measure_mood(text)

    assert -1 < felt < 1
    assert all(0 <= score_agreement(felt, (name,)) <= 1 for name in MOODS)


def test_only_the_beginning_of_a_long_text_is_read() -> None:
    assert measure_mood("x " * MAX_CHARS + "terrible") == 0
