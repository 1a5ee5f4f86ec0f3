"""Measures the mood of a message, from -1 (upset) to 1 (pleased), with small word lists in four languages.

It counts words, so it misses irony. A negated word counts the other way; German and Japanese put the
negation after the word. Capitals, `!!!` and "very" make it stronger, and text after a "but" outweighs text
before it. Words of greetings and closings, such as *liebe* or *freundlichen*, are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from unicodedata import normalize

from tacit.text.words import is_unspaced

MAX_CHARS = 5_000  # characters that are looked at

# A star stands for any ending.
_SPACED = {
    -2.0: """
    appalling awful catastroph* disaster* disgust* furious hate hated hates hating horrible nightmare*
    outrag* ridiculous terrible terribl* unacceptable unbearable worst
    empört* entsetz* frechheit* furchtbar* hasse hasst katastroph* schlimmste* schrecklich*
    unerträglich* unfassbar unverschämt* widerlich* wütend* zumutung*
    """,
    -1.0: """
    afraid anger angry annoy* bad boring broken broke confus* crash* crying damn delay*
    depress* disappoint* dissatisf* error errors exhaust* fail failed failing fails failure* fear*
    frustrat* garbage hurt* ignored incompetent lied lonely mad mess mistake* nervous nonsense
    pain painful poor problem* regret* rude ruin* sad sadly scam scared shame sick slow
    stress* stuck stupid sucks tired ugly unfair unfortunate* unhappy upset*
    useless waste* worr* worse wrong
    absturz* abgestürzt angst ängst* ärger* bedauer* beschwer* betrogen betrug* blöd* chaos defekt*
    dumm* einsam* enttäusch* erschöpft* falsch* fehler* frust* genervt* gestresst gescheitert hässlich*
    hilflos* ignorier* kaputt* langweilig* lästig* leider lüge* mies* mist müde nerv nervt nerven
    nervig* nutzlos* peinlich* sauer schade scheiß* schlecht* schlimm* schmerz* schrott schwach*
    sinnlos* sorge sorgen besorgt* traurig* überforder* unfreundlich* ungerecht*
    unglücklich* unzufrieden* unzuverlässig* verärger* verdammt* verlust* versag* verspät* verzweifel*
    wut
    """,
    1.0: """
    appreciat* beautiful* better bravo calm clever comfort* cool easy enjoy* excit*
    favorite favourite fine friendly fun funny glad good grateful great handy happy helpful hopeful
    impress* joy laugh* lovely nice pleasant pleased pleasure promising proud* recommend* reliable
    reliev* satisf* smile* smooth* solved succeed* success* sweet thank thanks welcome win winning won
    yay
    angenehm* beeindruck* bestens dank danke dankbar* einwandfrei* empfehl* entspannt* erfolg* erfreu*
    erleichtert* freue freuen freut freude* freundlich fröhlich* froh* gefällt gerne geschafft gewonnen
    glücklich* glückwunsch* gratul* gut gutes guter hilfreich* interessant* klasse lecker* lieb lob
    lustig* nett nette netten netter prima reibungslos* schön* spannend* spaß spitze stolz* super toll*
    top überzeugt* willkommen zufrieden* zuverlässig*
    """,
    2.0: """
    adore* amazing awesome best brilliant delight* excellent fantastic incredible love loved loves
    loving outstanding perfect superb thrilled wonderful*
    ausgezeichnet* begeister* fantastisch* genial* großartig* herrlich* hervorragend* perfekt*
    wunderbar* wundervoll*
    """,
}
_PAIRS = {
    "fed up": -2.0, "let down": -1.0, "well done": 1.0, "ich liebe": 2.0, "liebe es": 2.0,
    "alles gute": 1.0, "sehr gute": 1.0, "sehr guten": 1.0,
}  # fmt: skip
# Count only together with a "not": "it doesn't work", "das geht nicht".
_ONLY_NEGATED = """
    work works working help helps worth fair acceptable like funktioniert klappt geht hilft akzeptabel
"""
_NOT_BEFORE = """
    not no never neither nor without hardly barely cannot cant dont doesnt didnt isnt wasnt wont nothing
    nicht kein keine keinen keiner keinerlei nie niemals ohne weder kaum
"""
_NOT_BEHIND = "nicht nie niemals"
_VERY = """
    very really so extremely absolutely totally completely utterly truly too such
    sehr total echt extrem absolut völlig wirklich richtig unglaublich überhaupt
"""

_UNSPACED = {
    -2.0: """
    最悪 最低 激怒 許せな 許さな ふざけ あり得な ありえな 話にならな 腹が立 腹立 むかつ 大嫌い
    糟糕透 气死 愤怒 忍无可忍 太差 最差 差劲 恶心 无法接受 不可接受 太过分 离谱 崩溃 绝望 恶劣
    """,
    -1.0: """
    ひどい ひどく ひどす 酷い 酷く 怒っ 怒り 怒る イライラ いらいら うんざり 嫌い 嫌だ 嫌な 嫌に 悲し
    辛い 辛く つらい つらく 苦し 残念 がっかり 失望 困っ 困り 困る 不満 不安 心配 怖い 怖く 疲れ だめ
    ダメ 駄目 失敗 間違 壊れ 故障 不良 遅い 遅すぎ 遅れ 遅延 不具合 エラー 悪い 悪く 納得いか 納得でき
    迷惑 面倒 後悔 泣い 泣き 寂し 恥ずかし つまらな 無理 苦情 嘘 ストレス しんどい 届かな 届いていな
    届いていませ 使えな 動かな 動きませ 呆れ 落ち込 悔し 痛い 痛く 台無し 無責任 不快 不便 にくい
    返事がな 連絡がな
    糟糕 差评 很差 差 生气 恼火 火大 烦 讨厌 恨 难过 伤心 悲伤 失望 沮丧 痛苦 难受 害怕 担心 焦虑 紧张
    累 失败 错误 出错 报错 问题 故障 坏了 坏掉 垃圾 骗 投诉 抱怨 不满 不行 不爽 无语 无聊 麻烦 后悔 可惜
    遗憾 压力 尴尬 过分 可怕 太慢 延误 拖延 没用 浪费 损失 受不了 难吃 难用 哭 惨 卡死 混乱 乱七八糟
    没人理 没有回复 没有任何回复
    """,
    0.0: "差不多 出差 积累 累计 麻烦你 麻烦您 误差 问题是 恨不得",
    1.0: """
    嬉し うれし 楽し 良い 良かっ よかっ いいね いいです 素敵 すてき ありがと 有難 感謝 好き 幸せ 満足
    助かり 助かる 助かっ 便利 きれい 綺麗 美味し おいし 面白 おもしろ 安心 成功 合格 おめでと 優し 親切
    丁寧 快適 気に入 凄い すごい 見事 上手 喜ん 喜び 勝っ 賛成 順調 無事 美し 可愛 かわい 気持ちいい
    信頼 さすが 大丈夫 問題な 問題ありませ 文句な 直りました 治りました 解決しました うまくい ほっと
    很好 太好 真好 挺好 好吃 好看 好用 不错 喜欢 高兴 开心 快乐 幸福 满意 感谢 谢谢 感激 棒 赞 优秀 出色
    精彩 漂亮 美好 可爱 有趣 舒服 舒适 放心 成功 顺利 恭喜 祝贺 骄傲 自豪 激动 兴奋 惊喜 感动 温暖 友好
    热情 耐心 专业 周到 贴心 方便 轻松 愉快 厉害 靠谱 可靠 推荐 期待 赢了 通过了 搞定 解决了 值得 给力
    进步 幸运 没问题 没关系 哈哈 信任 好评
    """,
    2.0: "最高 素晴らし すばらし 大好き 完璧 感動 満点 太好了 太棒 完美 好极了 非常满意 棒极了 爱死",
}
_CLAUSE = "、。，；！？!?,.;\n"
_NOT_BEFORE_RUN = re.compile(rf"[不没未][^{_CLAUSE}]{{0,3}}\Z")
_NOT_BEHIND_RUN = re.compile(rf"[^{_CLAUSE}]{{0,5}}?(?:な[いか]|ません|(?:く|では|じゃ)あり)")
_VERY_RUN = re.compile(r"(?:とても|本当に|すごく|非常に|かなり|超|全く|非常|太|很|真|特别|极其|十分|实在)\Z")

_GLAD_SIGNS = frozenset("😀😃😄😁😊🙂😍🥰😎🤩🥳🎉👍🙏❤💖💕😂🤗👏✨☺😻💪")
_UPSET_SIGNS = frozenset("😠😡🤬😤😞😢😭☹🙁😩😫😖😣😒🙄👎💔😱😰😨🤮😓😔😟😿")
_SMILEY = re.compile(r"(?<![\w:])[:;]-?([()D/])(?!\w)")
_CONTRAST = re.compile(r"(?i)\b(?:but|however|aber|jedoch)\b|だけど|ですが|けれど|しかし|但是|可是|不过|然而")
_TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?|[.,;:!?\n]")
_CLAUSE_ENDS = frozenset(".,;:!?\n")
_DOUBLE_MARKS = re.compile(r"[?？][!！?？]|[!！][?？]")


def measure_mood(text: str) -> float:
    """From -1 to 1; 0 for a text without any sign of a mood."""
    text = normalize("NFC", text[:MAX_CHARS])
    weights = [*_weigh_words(text), *_weigh_signs(text), *(_weigh_runs(text) if is_unspaced(text) else ())]
    contrast = max((but.start() for but in _CONTRAST.finditer(text)), default=0)
    total: float = sum(weight * (0.5 if position < contrast else 1) for position, weight in weights)
    if not weights and _DOUBLE_MARKS.search(text):
        total = -0.4
    if re.search(r"[!！]{2}", text):
        total *= 1.4
    if _is_shouted(text):
        total *= 1.3
    return total / (abs(total) + 1 + len(text) / 400)


MOODS: dict[str, Callable[[float], float]] = {
    "negative": lambda felt: max(0.0, -felt),
    "positive": lambda felt: max(0.0, felt),
    "angry": lambda felt: max(0.0, -1.5 * felt - 0.5),  # only strong words
}


def score_agreement(felt: float, moods: tuple[str, ...]) -> float:
    """How well a mood matches the requested ones, 0 to 1. Names that are not in MOODS match nothing."""
    return max((MOODS[name.casefold()](felt) for name in moods if name.casefold() in MOODS), default=0.0)


def _weights_by_word(lists: dict[float, str]) -> dict[str, float]:
    return {word: weight for weight, line in lists.items() for word in line.split()}


_WEIGHTS = _weights_by_word(_SPACED)
_EXACT_WEIGHTS = {word: weight for word, weight in _WEIGHTS.items() if not word.endswith("*")}
_PREFIX_WEIGHTS = {word[:-1]: weight for word, weight in _WEIGHTS.items() if word.endswith("*")}
_PREFIX_LENGTHS = sorted({len(word) for word in _PREFIX_WEIGHTS}, reverse=True)
_ONLY_NEGATED_WORDS, _NEGATIONS, _NEGATIONS_BEHIND, _INTENSIFIERS = (
    frozenset(line.split()) for line in (_ONLY_NEGATED, _NOT_BEFORE, _NOT_BEHIND, _VERY)
)
_RUN_WEIGHTS = _weights_by_word(_UNSPACED)
_MAX_RUN_CHARS = max(map(len, _RUN_WEIGHTS))


# Each of these yields positions and weights.


def _weigh_words(text: str) -> Iterator[tuple[int, float]]:
    tokens = [(token.start(), token[0]) for token in _TOKEN.finditer(text)]
    folded = [token.casefold().replace("’", "'") for _, token in tokens]
    for index, (position, token) in enumerate(tokens):
        pair = f"{folded[index]} {folded[index + 1]}" if index + 1 < len(folded) else ""
        weight = _PAIRS.get(pair) or _word_weight(folded[index])
        is_negated = (weight or folded[index] in _ONLY_NEGATED_WORDS) and _is_negated(folded, index)
        if is_negated:
            weight = -0.7 * (weight or 1.5)
        if weight and index and folded[index - 1] in _INTENSIFIERS:
            weight *= 1.4
        if weight and len(token) > 2 and token.isupper():
            weight *= 1.2
        if weight:
            yield (position, weight)


def _word_weight(word: str) -> float:
    if word in _EXACT_WEIGHTS:
        return _EXACT_WEIGHTS[word]
    return next(
        (_PREFIX_WEIGHTS[word[:length]] for length in _PREFIX_LENGTHS if word[:length] in _PREFIX_WEIGHTS),
        0.0,
    )


def _is_negated(words: list[str], index: int) -> bool:
    for word in reversed(words[max(0, index - 3) : index]):
        if word in _CLAUSE_ENDS:
            break
        if word in _NEGATIONS or word.endswith("n't"):
            return True
    for word in words[index + 1 : index + 4]:
        if word in _CLAUSE_ENDS:
            return False
        if word in _NEGATIONS_BEHIND:
            return True
    return False


def _weigh_runs(text: str) -> Iterator[tuple[int, float]]:
    position = 0
    while position < len(text):
        length = next(
            (
                size
                for size in range(_MAX_RUN_CHARS, 0, -1)
                if text[position : position + size] in _RUN_WEIGHTS
            ),
            0,
        )
        weight = _RUN_WEIGHTS[text[position : position + length]] if length else 0.0
        if weight:
            preceding = text[max(0, position - 6) : position]
            if _NOT_BEFORE_RUN.search(preceding) or _NOT_BEHIND_RUN.match(text, position + length):
                weight *= -0.7
            yield (position, weight * (1.4 if _VERY_RUN.search(preceding) else 1.0))
        position += length or 1


def _weigh_signs(text: str) -> Iterator[tuple[int, float]]:
    for position, sign in enumerate(text) if not text.isascii() else ():
        if sign in _GLAD_SIGNS or sign in _UPSET_SIGNS:
            yield (position, 1.0 if sign in _GLAD_SIGNS else -1.0)
    for smiley in _SMILEY.finditer(text):
        yield (smiley.start(), 1.0 if smiley[1] in ")D" else -1.0)


def _is_shouted(text: str) -> bool:
    letters = [letter for letter in text if letter.isupper() or letter.islower()]
    return len(letters) > 7 and sum(map(str.isupper, letters)) > 0.7 * len(letters)
