"""Patterns for sentences that say that something was decided, learned or done.

In English, German, Japanese and Chinese. They match wordings, not meanings: "oak it is" is a decision that
they miss. Questions, wishes, conditions and negations are excluded if the wording shows them, which favors
precision over recall.

In the lists below every line is one regular expression in which `<name>` stands for one of _PIECES. A list is
tried only if one of its needles is in the text, which makes the search cheap. Gaps are bounded, so the time
grows linearly with the length of the sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Literal, NamedTuple, TypeAlias

from tacit.text.sentences import is_informative, mask_quotes, shorten_sentence, split_sentences
from tacit.text.words import is_unspaced

StatementKind: TypeAlias = Literal["decision", "lesson", "event"]
_MAX_TURN_CHARS = 20_000

_PIECES = {
    "name": r"(?-i:(?!(?:Nobody|Who|Nothing|None|If|When|Once|Never|Neither|Should|What)\b)[A-Z][\w'’-]+)"
    r"(?<!ly)(?<!ing)",
    "thing": r"(?:the|our|my|his|her|their|all|both)"
    r"(?: (?!(?:not|never|will|is|are|can|should|must|to|of|and|you|that|which)\b)[\w-]+){1,4}?",
    "have": r"(?:['’]ve| have|['’]s| has)?",
    "now": r"(?:(?:now|just|also|finally|already|then|all|both) )?",
    "hat": r"(?:hat|haben|habe?|ist|sind|wurden?)",
    "gap": r"(?:(?!\b(?:nichts?|nie|niemals|kaum|keine?[nmrs]?)\b|[.;:!?]).){0,90}?",
    "done": r"(?:shipped|deployed|merged|released|launched|delivered|signed|paid|finished|completed|published"
    r"|cancell?ed|booked|installed|repaired|fixed|migrated|closed|sent|called|arrived|received|submitted"
    r"|approved|ordered|moved|replaced|restored|renamed|uploaded|registered|postponed|broken down)\b",
    "did": r"(?!(?:looked|checked|reviewed|noticed|considered|wondered|wanted|needed|tried|noted|liked"
    r"|loved|hated|decided"
    r"|used|lived|worked|asked myself|assumed|hoped|planned|missed|heard|learned"
    r"|received)\b)(?:[a-z]{3,}ed|written|put|set"
    r"|made|built|sent|sold|bought|told|taken|given|drawn|cut|begun|rung)\b",
    "gone": r"(?:yesterday|last (?:night|week|month|year|<day>)|on the [0-9]{1,2}(?:st|nd|rd|th)"
    r"|(?:days?|weeks?|months?) ago)\b(?!['’]s)",
    "past": r"(?!(?:need|feed|speed|exceed|proceed|wanted|needed|hoped|wondered|liked|planned|loved)\b)"
    r"(?:[a-z]{2,}ed|was|were|went|came|met|sent|bought|sold|made|took|gave|broke|fell|found|lost|won"
    r"|left|paid|ran|rang|spoke|wrote|began|held|had|got|told|drove|built|threw|stood)\b",
    "erledigt": r"(?:angerufen|(?:aus)?geliefert|verschickt|versendet|versandt|bezahlt|überwiesen"
    r"|unterschrieben|abgeschlossen|fertiggestellt|veröffentlicht|angekommen|gebucht|storniert|abgesagt"
    r"|gekündigt|installiert|umgezogen|eingebaut|repariert|ausgefallen|getroffen|bestellt|abgeholt"
    r"|eingereicht|genehmigt|gesendet|geschickt|umgestellt)\b",
    "完了": r"(?:完了|発送|出荷|リリース|公開|納品|入金|支払い|予約|契約|電話|デプロイ|マージ|送信|提出"
    r"|修理|設置|到着|移行|注文|終了|承認)",
    "完成": r"(?:完成|发布|上线|发货|寄出|签|付款|付|搞定|做完|修好|收到|交付|合并|部署|取消|提交|批准|下单"
    r"|安装好|开通)",
    "day": r"(?:mon|tues|wednes|thurs|fri|satur|sun)day",
    "month": r"(?:january|february|march|april|may|june|july|august|september|october|november|december)",
    "tag": r"(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch",
}  # fmt: skip


def _expand_piece(name: str) -> str:
    """Insert the pieces that it refers to."""
    return re.sub(r"<(\w+)>", lambda match: _PIECES[match[1]], _PIECES[name])


@cache
def _compile_any(lines: str) -> re.Pattern[str]:
    """A pattern for any of the lines. In scripts with spaces, a match begins at a word. Compiled on first
    use, because all of them together take 70 ms."""
    expanded = re.sub(r"<(\w+)>", lambda match: _expand_piece(match[1]), lines)
    alternatives = [line if is_unspaced(line) else rf"\b(?:{line})" for line in expanded.splitlines() if line]
    return re.compile("|".join(alternatives), re.IGNORECASE)


class Cue(NamedTuple):
    kind: StatementKind
    needles: str  # one of these is in the lowercased text; separated by |
    wordings: str
    dated: bool = False  # counts only together with a day or a time
    agents: bool = True  # whether it counts when an agent says it; agents propose and explain all the time


# The first match counts, so what was decided and done is a decision.
_CUES = (
    Cue("decision", "decided|agreed|settled|decision|made up|from now on|going forward", r"""
(?:we|i|they|the team|every(?:one|body)|<name>(?: and i)?)<have> <now>decided\b
(?:we|i|they|the team|every(?:one|body)|<name>(?: and i)?)<have> <now>(?:agreed (?:to|on|that)|settled on)\b
(?:we|i)<have> <now>made up (?:our|my) minds?\b
(?:it|that)(?:['’]s| is| was| has been) <now>(?:decided|agreed|settled)\b
(?:the|our|my) (?:final )?decision (?:is|was)\b(?! (?:up to|yours|still|pending|hard|not)\b)
(?<![a-z] )decision(?: made)?\s*:
(?:from now on|going forward)\b
"""),
    Cue("decision", "let's|let’s|lets |let us|go with|going with|switch|stick|stay with|use|chose|as of"
        "|starting|take", r"""
let(?:['’]?s| us) (?:go with|use|stick (?:with|to)|stay with|switch to|move (?:it |this )?to|settle on|drop)\b
let(?:['’]?s| us) keep (?:the|our|using)\b
(?:we|i)(?:['’]re| are|['’]m| am) (?:going with|switching to|sticking (?:with|to))\b
(?:we|i)(?:['’]ll| will) (?:go with|use|stick (?:with|to)|stay with|switch to)\b
(?:we|i)<have> <now>chosen?\b
(?:as of|starting(?: with| from| in)?) (?:today|now|tomorrow|next (?:week|month|year)|<day>|<month>)\b
we (?:stay|stick|go) with\b
we (?:switch|change|go back) to\b
we(?:['’]ll| will)? take (?:number|option|variant) \w
""", agents=False),
    # Standing orders and changed values.
    Cue("decision", "rule|mind|moves|goes|go |shift|instead of|always|never|when", r"""
(?:\A\W*(?:ok(?:ay)?|so|and|new)?,? ?)(?:a |the |new )?rule\s*:
(?:that|this)(?:['’]s| is) (?:now )?the (?:new )?rule\b
let(?:['’]?s| us) make (?:it|that|this) a rule\b
i(?:['’]ve| have)? chang(?:e|ed) my mind\b
[\w-]+ (?:moves|shifts) to (?:(?:the )?[0-9]|<day>|<month>|next )
[\w-]+ (?:now )?go(?:es)? to [0-9]
[0-9][0-9.,:]{0,9}\S{0,3} (?:\w+ )?instead of (?:\w+ )?[0-9]
\A\W*(?:and |but |so )?please (?:always|never)\b
when(?:ever)? i (?:ask|say|tell|write|send)\b[^.;?]{1,60}, (?!(?:i|you|it|they|he|she|we|that|this)\b)[a-z]
""", agents=False),
    Cue("decision", "regel|statt|bitte|wenn ich", r"""
(?:\A\W*(?:ok(?:ay)?|also|und|neue)?,? ?)(?:die |neue )?regel\s*:
[0-9][0-9.,:]{0,9}\S{0,3} (?:\w+ )?statt (?:\w+ )?[0-9]
\A\W*(?:und |aber |also )?bitte (?:immer|nie|niemals|nie mehr)\b
wenn ich\b[^.;?,]{0,60}\b(?:frage|sage|schreibe|schicke), (?!(?:ich|du|es|er|sie|wir|das)\b)[a-zäöü]
""", agents=False),
    Cue("decision", "entschieden|beschlossen|vereinbart|festgelegt|geeinigt|entscheidung|beschluss|abgemacht"
        "|nehmen|nehme |ab jetzt|ab sofort|ab heute|ab morgen|nun an|künftig|zukunft|bleib|steht fest"
        "|machen wir|wir machen", r"""
(?:wir haben|ich habe?|haben wir|habe? ich|<hat>)\b<gap>\b(?:entschieden|beschlossen|vereinbart|festgelegt)\b
<hat>\b<gap>\bgeeinigt\b
(?:die|unsere|meine) entscheidung (?:ist|war|lautet|fiel|steht)\b
(?:entscheidung|beschluss|beschlossen|entschieden|abgemacht)\s*:
(?:wir nehmen|nehmen wir|ich nehme)\b(?![^.;]{0,120}\b(?:an|teil|mit|zur kenntnis)\s*(?:[,.!]|\Z))
(?:ab (?:jetzt|sofort|heute|morgen)|von nun an|künftig|in zukunft)\b
(?:wir bleiben bei|es bleibt (?:bei|dabei)|(?:das|es|damit) steht fest|so machen wir|wir machen das so)\b
"""),
    Cue("decision", "決め|決ま|決定|にし|にす|ことに|でいこ|でいき|今後|これから|今日から|採用", r"""
決め(?:た|ました)(?![らい])
決ま(?:った|りました)(?!ら)
決定(?:した|しました|です|だ|事項|:|：)(?!ら)
(?<!気)(?<!参考)(?<!楽しみ)(?<!大切)(?<!大事)に(?:しよう|しましょう|します|する[。！]|した[。！])(?!か)
ことに(?:した|しました|します|なった|なりました)(?!ら)
でい(?:こう|きましょう|きます|くことに)(?!か)
(?:今後|これから|今日から)は
採用(?:する[。！]|します|しました|した(?!ら))
"""),
    Cue("decision", "决定|決定|就用|就选|就按|定了|定下|敲定|说好|就这么|就這麼|现在|現在|从今|以后|今后"
        "|从明天", r"""
(?:我们|我們|我|大家|团队|最后|最终|已经?|一致|双方)[^，。；不没怎如要能还由等想]{0,6}?[决決]定(?!性|权|于)
[决決]定(?:了|用|采用|选|改用|[:：])
(?:就用|就选|就按)
(?:就这么|就這麼|说|已经?|都)定(?:了|下来)
(?:定下来了|敲定|选定了|说好了|就这么办)
(?:从|從)(?:现在|現在)(?:起|开始|開始)
(?:从今(?:天|以后|往后)|从明天)(?:起|开始)?
以后(?:都|就|一律)
今后(?:都|就|一律|我们)
"""),
    Cue("lesson", "lesson|, ever|next time|never again|to self|hindsight|should|mistake was|thumb|learn", r"""
(?<!the )lessons? (?:learn(?:ed|t)\b(?!\W*\Z)|here|is that|was that|from (?:this|that|today))
lessons?\s*:
learn(?:ed|t) (?:my|our|a|the) lesson\b
a (?:hard|painful|good|valuable|costly) lesson\b
the lesson (?:is|was|for)\b
(?:nothing|nobody|never|no)\b[^.;?]{1,80}, ever\s*[.!]?\Z
next time\b(?!\s*(?:[.!]|\Z))
never again\b
(?:note to self|in hindsight|rule of thumb)\b
(?:we|i) should(?:['’]ve| have)\b(?! (?:done|seen|known|noticed|caught) (?:this|that|it|so)\b)
(?:the|our|my) mistake was\b
(?:we|i)<have> (?:also |just )?learn(?:ed|t) (?:that|to|not|the hard|from)\b
"""),
    # Agents say this about every bug they look for.
    Cue("lesson", "turns out|turned out", r"""
(?:it )?turn(?:s|ed) out(?:,| (?:that|to be|the|we|i|it|he|she|they|my|our|this|there|you)\b)
""", agents=False),
    Cue("lesson", "gelernt|lektion|merke|fazit|lehre|mal |nie wieder|heraus|nachhinein|sollen|fehler", r"""
(?:gelernt|lektion|merke|fazit)\s*:
(?:wir haben|ich habe?|habe ich|daraus|dabei)\b<gap>\bgelernt\b
die (?:lektion|lehre (?:daraus|ist))\b
(?:beim )?nächste[sn]? mal\b(?!\s*(?:[.!]|\Z)| vielleicht)
nie wieder\b
(?:stellte? sich heraus|hat sich herausgestellt|im nachhinein)\b
(?:hätten wir|hätte ich|wir hätten|ich hätte)\b[^.;]{0,80}\bsollen\b
der fehler war\b
"""),
    Cue("lesson", "教訓|反省|次回|今度から|二度と|学|判明|かったのは|べき", r"""
教訓(?:は|：|:|として|です|になった|になりました|を得)
反省(?:点|として|：|:)
次回(?:は|から)(?!.{0,6}(?:曜|[0-9０-９一二三四五六七八九十]+[月日時]|来週|来月|明日|未定|いつ))
(?:今度から|二度と)
学(?:んだ|びました)
[がと]判明し(?:た|ました)
[わ分]かったのは
べき(?:だった|でした)
"""),
    Cue("lesson", "教训|下次|学到|原来|结果发现|早知道|再也不|事后|应该", r"""
教训(?:是|就是|：|:)
(?:吸取|记住|得到|惨痛)[^，。]{0,8}教训
下次(?!见|再说|再聊|聊|吧|会议|开会|什么时候|是)
学到(?:了|的)
原来(?:是|要|得|必须)
(?:结果发现|早知道|再也不|事后看|本(?:来)?应该)
"""),
    Cue("event", "ped|yed|ged|sed|hed|red|ned|ced|med|ded|paid|xed|ted|led|ved|sent|down|done|live|running"
        "|in production", r"""
(?:i|we)(?:['’]ve| have)? <now><done>
(?:is|are) (?:now |finally |all )?(?:done|live|up and running|in production)\b
went live\b
"""),
    Cue("event", "i've|i’ve|i have|we've|we’ve|we have", r"""
(?:i|we)(?:['’]ve| have) <now><did>(?! (?:it|this|that|these|those|them|everything)\b[^.;0-9]*(?:[.;]|\Z))
"""),
    # Events on a past day, by any speaker.
    Cue("event", "yesterday|last |ago|on the ", r"""
(?!(?:you|who|which|that|what|it)\b)\w+ <past>[^.;?]{0,80}\b<gone>
<gone>,? [^.;,?]{1,60}? <past>
"""),
    Cue("event", "ped|yed|ged|sed|hed|red|ned|ced|med|ded|paid|xed|ted|led|ved|sent|finish|down", r"""
(?:he|she|they|it|<thing>)<have>(?: was| were| got)?(?: been)? <now><done>(?! (?:by default|functions?|off)\b)
<name>(?:['’]s| has| have) <now><done>
<name> <now>(?:called|sent|paid|arrived|signed|shipped|ordered|merged|cancell?ed)\b
(?:has|have) <now>been <now><done>
(?:is|are) (?:now |finally |all )finished\b
""", agents=False),
    Cue("event", "ped|yed|ged|sed|hed|red|ned|ced|med|ded|paid|xed|ted|led|ved|sent|down", r"""
<thing> (?:was|were|has been|have been) <now><done>
""", dated=True),
    Cue("event", "yesterday|today|this morning|this after|this even|last |day|at |:|-", r"""
(?:i|we|he|she|they|it|<name>|<thing>) <now><past>
""", dated=True, agents=False),
    Cue("event", "angerufen|liefert|send|sandt|schickt|zahlt|wiesen|schrieben|schlossen|stellt|licht|kommen"
        "|bucht|storniert|sagt|digt|installiert|zogen|baut|repariert|fallen|troffen|holt|reicht|nehmigt", r"""
<hat>\b<gap>\b<erledigt>
"""),
    Cue("event", "erledigt|fertig|ist live|durch|ist da|sind da|abgeschlossen", r"""
(?:ist|sind) (?:jetzt |nun |endlich |schon )?(?:erledigt|fertig|live|durch|da|abgeschlossen)\b
"""),
    Cue("event", "heute|gestern|tag|mittwoch|letzte|:", r"""
<hat>\b<gap>\b(?:\w{0,20}ge|ver|be)\w{2,30}(?:t|en)\b
(?:war|waren|kam|kamen|ging|gingen|fiel|rief|brach|wurden?)\b
""", dated=True, agents=False),
    Cue("event", "した|済み|できた|でき|です|あった|あり|終わ|届|壊れ|送", r"""
<完了>[がはをも]?(?:した|しました|済み|できた|できました|ありました|あった|です[。！])(?![らりい])
(?:終わ(?:った|りました)|届(?:いた|きました)|壊れ(?:た|ました)|送(?:った|りました)|届け(?:た|ました))(?![らい])
"""),
    Cue("event", "昨日|今日|今朝|先週|昨夜|月|日|時", r"""
(?:ました|った|いた|んだ)(?=[。！、\s]|\Z)
""", dated=True, agents=False),
    Cue("event", "了|已|打", r"""
<完成>了
已经?<完成>
(?:打(?:了|来)[^，。]{0,4}电话|打电话来)
"""),
    Cue("event", "昨天|今天|今早|上周|刚才|昨晚|上个月", r"""
[^，。]了
""", dated=True, agents=False),
)  # fmt: skip

_DAY = r"""
(?:yesterday|today|this (?:morning|afternoon|evening)|last (?:night|week|month|<day>)|on <day>)\b
on the [0-9]{1,2}(?:st|nd|rd|th)\b
at (?:noon|midnight|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b
(?:heute|gestern|vorgestern|am (?:<tag>)|letzte[nrs]? (?:woche|nacht|<tag>))\b
[0-9]{1,2}:[0-9]{2}\b
[0-9]{4}-[0-9]{2}-[0-9]{2}\b
(?:昨日|今日|今朝|先週|昨夜)
[0-9０-９]+[月日時]
(?:昨天|今天|今早|上周|刚才|昨晚|上个月)
"""

# ---------------------------------------------------------------- sentences that state nothing

_QUESTION = re.compile(
    r"[?？][\"'”」』)）\s]*\Z"
    r"|(?:です|ます|ました|でした|ません|だろう|でしょう|しよう|いこう|ましょう)か[。！\s]*\Z"
    r"|(?:吗|嗎|呢|要不要|是不是)[。！\s]*\Z"
    r"|\A\W*(?i:should|shall|could|would|did|do|does|have (?:we|you|they)|has (?:he|she|it|the)|what if"
    r"|soll(?:t?en) wir|haben wir|hast du|hat er|wollen wir|können wir|was wäre)\b"
)

_IF = r"""
(?:if|unless|whether|in case|suppose|supposing|imagine|assuming|wenn|falls|ob|angenommen)\b
もし|仮に|如果|要是|假如|假设|若是|万一|除非|なら
"""
_MAYBE = r"""
(?:maybe|perhaps|possibly|might|could|would|should|wish|hope|hoping|thought|think|pretend|guess)\b
(?:vielleicht|eventuell|könnten?|würden?|hätten?|sollten?|hoffe|hoffentlich|dachte|glaube)\b
たぶん|おそらく|しかしたら|也许|或许|可能|大概|说不定|希望|应该
"""
_NOT = r"""
(?:not|never|nobody|none|cannot|without|nicht|nie|niemand|niemals|keine?[nmrs]?|ohne|kaum)\b
[a-z]+n['’]t\b
[没沒未別别]|不是|不要|ずに|ないで
"""
_UNTIL = (
    r"(?:when|once|until|till|before|because|as soon as|why|how|what|which|weil|bis|bevor|sobald|warum"
    r"|wie|was|worauf)\b"
)
_TO_COME = r"""
(?:will|shall|going to|must|needs? to|have to|has to|wants?|plan(?:s|ning)?|tomorrow|next|almost|nearly)\b
(?:wird|werden|soll|sollen|muss|müssen|möchten?|morgen|nächste\w*|fast|beinahe)\b
(?:i|we|he|she|they|it)['’]ll\b
明日|予定|つもり|来週|明天|打算|准备|将|想要|下周|差点|快要
"""

# Searched before the match, and from the match on.
_BEFORE: dict[StatementKind, str] = {
    "decision": f"{_IF}{_MAYBE}{_NOT}{_UNTIL}\\W*\\Z\n等|待",
    "lesson": r"""
(?:if|whether|how(?:ever)?|whatever|until|till|see you|maybe|perhaps|ob|wie|bis|falls)\W+(?:it |das )?\Z
(?:not|never|haven['’]t|hasn['’]t|didn['’]t)\s+\Z
また\Z|[没沒]有?\Z
""",
    "event": f"{_IF}{_MAYBE}{_NOT}{_TO_COME}{_UNTIL}[^,;:]{{0,80}}\\Z\n等|待",
}  # fmt: skip
_AFTER: dict[StatementKind, str] = {
    "decision": r"""
(?:yet|or not|only if|if (?:nobody|that|you|they|it)|unless|falls|nur wenn|sofern|noch nicht|oder nicht)\b
かもしれ|かな|わけではない|と思う|と思います|だろう|的话|还是不
""",
    "lesson": "かもしれ|かな",
    "event": r"""
(?:yet|noch nicht|supposed to)\b
かもしれ|はず|だろう|でしょう|と思|わけではない|つもり|予定
了(?:之后|以后|再|就|的话|才)|完成后
""",
}


def find_statements(text: str, *, by_agent: bool = False) -> tuple[tuple[StatementKind, str], ...]:
    """The sentences of a message that state something, each with its kind."""
    return _cached_statements(text[:_MAX_TURN_CHARS], by_agent)


@lru_cache(maxsize=512)  # several extractors read a turn, and then the day's summary
def _cached_statements(text: str, by_agent: bool) -> tuple[tuple[StatementKind, str], ...]:
    return tuple(_iter_statements(text, by_agent))


def _iter_statements(text: str, by_agent: bool) -> Iterator[tuple[StatementKind, str]]:
    cues = find_cues(text, by_agent=by_agent)
    for sentence in split_sentences(text) if cues else ():
        kind = classify_sentence(mask_quotes(sentence), cues) if is_informative(sentence) else None
        if kind:
            yield kind, shorten_sentence(sentence)


def find_cues(text: str, *, by_agent: bool = False) -> list[Cue]:
    """The cues worth trying on the sentences of `text`."""
    lowered = text.lower()
    return [
        cue
        for cue in _CUES
        if (cue.agents or not by_agent) and any(map(lowered.__contains__, _split_needles(cue.needles)))
    ]


def classify_sentence(sentence: str, cues: Iterable[Cue]) -> StatementKind | None:
    """The kind of statement the sentence makes, if any. Mask quotes and code first."""
    cue = next((cue for cue in cues if _matches_cue(cue, sentence)), None)
    return None if cue is None or _QUESTION.search(sentence) else cue.kind


_WISHED = rf"""
{_IF.strip()}
{_MAYBE.strip()}
(?:i(?:['’]d| would)|we(?:['’]d| would)|suggest\w*|propos\w+|pretend\w*|ich würde|wir würden|vorschlag\w*)\b
"""


def is_question(sentence: str) -> bool:
    return _QUESTION.search(sentence) is not None


def is_hypothetical(part: str) -> bool:
    """Whether this part of a sentence has a wish, a guess or a condition."""
    return _compile_any(_WISHED).search(part) is not None


def is_planned_or_negated(part: str) -> bool:
    """Whether this part of a sentence is about something planned, demanded or denied."""
    return _compile_any(_TO_COME).search(part) is not None or _compile_any(_NOT).search(part) is not None


@cache
def _split_needles(needles: str) -> tuple[str, ...]:
    return tuple(needles.split("|"))


def _matches_cue(cue: Cue, sentence: str) -> bool:
    if cue.dated and not _compile_any(_DAY).search(sentence):
        return False
    for match in _compile_any(cue.wordings).finditer(sentence):
        before, after = sentence[: match.start()], sentence[match.start() :]
        if not _compile_any(_BEFORE[cue.kind]).search(before) and not _compile_any(_AFTER[cue.kind]).search(
            after
        ):
            return True
    return False
