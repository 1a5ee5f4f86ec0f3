"""Detects the language of a text by its script, its small words and its letters. None if unsure.

Small and ready at once: a trained model knows a hundred languages, takes half a second to load and is wrong
about short messages as well.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

_MAX_CHARS = 1000  # characters
_MIN_WORDS = 3  # if the script alone does not decide

_SCRIPTS = {
    "Latin": "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff",
    "Cyrillic": "\u0400-\u052f",
    "el": "\u0370-\u03ff\u1f00-\u1fff",
    "Arabic": "\u0620-\u064a\u066e-\u06d3\u06fa-\u06ff",
    "he": "\u05d0-\u05ea",
    "hi": "\u0900-\u0963\u0970-\u097f",
    "th": "\u0e01-\u0e3a\u0e40-\u0e4e",
    "ko": "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3",
    "kana": "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\uff66-\uff9f",
    "Han": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff",
}
_RUNS = re.compile("|".join(f"(?P<{name}>[{letters}]+)" for name, letters in _SCRIPTS.items()))
_LETTER_WEIGHTS = {"kana": 2, "Han": 3, "ko": 2}  # one of these says as much as so many letters
_NOT_PROSE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]{0,200}`|(?:https?://|www\.)\S+|\S+@\S+", re.DOTALL)


def detect_language(text: str) -> str | None:
    """The ISO 639-1 code."""
    prose = text[:_MAX_CHARS]
    if "`" in prose or "@" in prose or "/" in prose or "www." in prose:
        prose = _NOT_PROSE.sub(" ", prose)
    script = "Latin" if prose.isascii() else _detect_script(prose)
    if script == "Latin":
        return _detect_by_words(prose, _latin_evidence())
    if script == "Cyrillic":
        return _detect_by_words(prose, _cyrillic_evidence())
    if script == "Arabic":
        return "fa" if _PERSIAN.search(prose) else "ar"
    return script


_PERSIAN = re.compile("[\u067e\u0686\u0698\u06af\u06cc\u06a9]")  # letters that Arabic does not have


def _detect_script(prose: str) -> str | None:
    """The script of most letters; None if two are about equal."""
    weights = Counter[str]()
    for run in _RUNS.finditer(prose):
        name = run.lastgroup or ""
        weights[name] += (run.end() - run.start()) * _LETTER_WEIGHTS.get(name, 1)
    kana, han = weights.pop("kana", 0), weights.pop("Han", 0)
    if kana or han:
        weights["ja" if 5 * kana >= han else "zh"] = kana + han
    ranked = weights.most_common(2)
    if not ranked or (len(ranked) == 2 and 3 * ranked[1][1] > 2 * ranked[0][1]):
        return None
    return ranked[0][0]


# The most frequent small words without a topic, and the weights of typical letters. A word that several
# languages share counts a little for each of them.
_LATIN = {
    "en": """the of and to in is that it for was on are with as i his they be at have this from or had by
        not but what all were we when your can said there use an each which she do how their if will
        up other about out many then them these so some her would make like him into has look more
        could go no way my than been who its now did get come made may you he me us our just only
        very also after before should don't it's i'm please thanks any need does yesterday today
        tomorrow here want know still where why got off because again let too think am let's can't
        won't didn't doesn't isn't wasn't aren't couldn't wouldn't shouldn't haven't i'd i'll i've
        you're we're they're that's there's what's nobody anyone someone something nothing everyone
        every both through find keep put take over under between while since until two three last
        next first new old good much""",
    "de": """der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an
        werden aus er hat dass sie nach wird bei einer um am sind noch wie einem über einen so zum
        war haben nur oder aber vor zur bis mehr durch man sein wurde sei ich du wir ihr mir mich dir
        dich uns mein meine dein kein keine wenn was wer wo warum kann kannst können muss müssen soll
        sollen will bitte danke schon doch mal hier heute morgen gestern jetzt gibt habe hast ja nein
        sehr alle dann also diese dieser dieses ihn ihm unser unsere gut vom beim machen wieder immer
        weil seit ob etwas""",
    "fr": """le la les de des du et à un une en est que qui dans pour pas sur au aux avec ce il elle je
        nous vous ils elles on ne se sont par plus ou mais comme si leur y été être ont cette ces ses
        son sa mon ma mes ton ta tes notre votre nos vos tout tous toute fait faire bien aussi très
        encore quand où pourquoi comment peux peut dois doit faut merci oui non c'est j'ai n'est d'un
        d'une qu'il qu'on ça cela hier demain aujourd'hui ici là alors donc sans sous chez entre même
        quel quelle dire avez avons suis as es était lui moi toi rien avant après trop""",
    "es": """el la los las de del y a en un una que es por para con no se su lo como más pero sus le ya o
        este sí porque esta entre cuando muy sin sobre también me hasta hay donde quien desde todo
        nos durante todos uno les ni contra otros ese eso ante ellos e esto mí antes algunos qué unos
        yo otro otras otra él tanto esa estos mucho nada muchos cuál poco ella estar estas mi mis tu
        tus tú te ti ser soy está están estoy fue era son ha he han tengo tiene puedo puedes puede
        hacer gracias hoy ayer mañana ahora aquí al si bien dónde cómo cuándo quiero necesito favor
        nuestro nuestra usted""",
    "it": """il lo la i gli le di del della dei degli delle e a in un una uno che è per con non si su da
        come più ma anche se o sono mi ti ci vi ne al alla ai alle dal dalla nel nella nei sul sulla
        questo questa questi quello quella quando dove perché chi cosa molto tutto tutti ho hai ha
        abbiamo hanno era essere fare fatto posso puoi può devo deve grazie oggi ieri domani ora
        adesso qui già ancora sempre mai poi così c'è dell'anno l'ho un'altra mio mia tuo tua suo sua
        nostro vostro loro lui lei io tu noi voi senza dopo prima ogni quale sì no bene solo proprio
        stato stata vorrei dei""",
    "pt": """o a os as de do da dos das e em um uma que é para por com não se no na nos nas ao à aos mais
        mas como foi ele ela eu você vocês nós eles elas me meu minha meus seu sua seus suas isso
        isto esse essa este esta também já muito quando onde porque quem ou ser são está estão estou
        tem tenho temos têm ter pode posso fazer hoje ontem amanhã agora aqui obrigado obrigada sim
        bem só até sem sobre entre depois antes tudo todos todas pelo pela num numa lhe nosso nossa
        ainda qual quero preciso favor há era foram vai vou estava dele dela te tu teu fica outro
        outra outros outras vez vezes dois duas três quer querem dia dias ano anos mesmo nada nunca
        sempre cada coisa gente alguém ninguém fiz fez deu dar ver lá cá pouco muitos muita""",
    "nl": """de het een en van in is dat op te zijn met voor niet die aan er om ook als maar dan of bij
        uit nog naar door over zo wat worden wordt werd was heeft hebben had heb hij zij ze we wij ik
        je jij jullie u mij me mijn jouw ons onze hun haar hem deze dit daar hier waar wie waarom hoe
        wanneer kan kun kunnen moet moeten wil willen zou zal mag graag bedankt dank ja nee geen al
        meer veel heel goed nu vandaag gisteren morgen toch wel even want omdat tot tegen na zonder
        iets niets alles gaat gaan maken doen weer altijd tussen onder alweer zit staat kort twee
        drie jaar dag uur keer nooit iemand niemand laat laten eens geef geeft zeg zegt weet weten
        komt komen zien maak doet waren toen andere eerst""",
    "pl": """i w na z do nie się to że jest o jak a po co tak za od jego dla czy już ale ten tym tego być
        był była są przez tylko może przy ze które który która jej ich mnie mi ja ty my oni pan
        bardzo kiedy gdzie dlaczego dziękuję proszę dziś dzisiaj wczoraj jutro teraz tu tam mam masz
        ma można trzeba chcę mogę możesz jeszcze też lub bez pod nad przed więc wszystko jeśli żeby
        ci go jestem nam nas tej te""",
    "sv": """och i att det som en på är av för med den till inte om ett han men var jag från vi så kan
        när har de eller vad alla du sig mot här där hur varför man nu ut upp efter under mycket
        också bara min mitt mina din ditt vår vårt er hon dem detta denna dessa blir blev vara varit
        hade ska skulle måste vill tack ja nej idag igår imorgon kanske någon något några inga ingen
        utan mellan vilken gör göra får oss mig dig snälla redan igen aldrig alltid lite mer många
        andra år vecka dag eftersom sedan vilket""",
    "da": """og i at det er en til på af for som med den ikke de der et har han om var jeg vi fra men så
        kan når hvad hvor hvordan hvorfor du sig mod her man nu ud op efter under meget også bare kun
        min mit mine din dit vores jer hun dem dette denne disse bliver blev være været havde skal
        skulle må vil tak ja nej i dag går morgen måske nogen noget nogle ingen uden mellem gøre får
        os mig dig lige hvis eller kunne ville af hedder bliver mere alle over deres hans hende fordi
        brug lidt siden selv andre mange nej sige år uge hver lige blevet hvem hvilken synes igen
        kunne""",
    "no": """og i å det er en til på av for som med den ikke de der et har han om var jeg vi fra men så
        kan når hva hvor hvordan hvorfor du seg mot her man nå ut opp etter under mye også bare min
        mitt mine din ditt vår vårt dere hun dem dette denne disse blir ble være vært hadde skal
        skulle må vil takk ja nei i dag går morgen kanskje noen noe ingen uten mellom gjøre får oss
        meg deg hvis eller kunne ville mer alle over deres hans henne fram ikkje eg fordi bruk litt
        siden selv andre mange si år uke hver blitt hvem hvilken synes igjen""",
    "fi": """ja on ei se että oli hän mutta ovat kun niin kuin myös joka mitä tämä en minä sinä me te he
        ole olen olet olemme olla sen sitä tai jos vain nyt jo mukaan ennen sekä sitten vielä hyvin
        miksi missä milloin miten kuka kiitos kyllä tänään eilen huomenna täällä siellä voi voin voit
        voisitko pitää minun sinun meidän teidän heidän tästä siitä tässä siinä mikä kanssa paljon
        kaikki ettei eikä ollut olisi minulle meille voitko onko""",
    "cs": """a v se na je že s z do to i o k ve pro za by ale si po jako jsem jsou jeho co už tak od ze
        při jen když které který která nebo být byl byla bylo bych aby mě mi já ty my vy oni ten ta
        tento tato kde proč jak kdy děkuji prosím dnes včera zítra teď tady tam mám máš má můžu můžeš
        může musím ještě také velmi bez pod nad před než kdo jsme jste není jestli svůj něco všechno
        podle ji jej zase pak tedy hodně rok den vždy nikdy jeden dva tři""",
    "tr": """ve bir bu da de için ile çok ne mi mı var daha gibi kadar olarak sonra ben sen biz siz onlar
        ama en o şu her ki ya değil olan oldu olduğu nasıl neden nerede kim bana sana bize bunu bunun
        beni seni hem şimdi bugün dün yarın evet hayır lütfen teşekkürler teşekkür ederim istiyorum
        misin mısın musun mu mü yok hiç bile önce göre veya ancak şey iyi büyük yeni benim senin
        bizim""",
}  # fmt: skip
_LATIN_LETTERS: dict[str, dict[str, float]] = {
    "ß": {"de": 3}, "ä": {"de": 1, "sv": 0.6, "fi": 0.8}, "ö": {"de": 0.8, "sv": 0.6, "fi": 0.4, "tr": 0.6},
    "ü": {"de": 1, "tr": 0.8}, "ñ": {"es": 3}, "¿": {"es": 3}, "¡": {"es": 3}, "ã": {"pt": 2}, "õ": {"pt": 2},
    "ç": {"fr": 0.6, "pt": 0.6, "tr": 0.6}, "ê": {"fr": 0.6, "pt": 0.5}, "è": {"fr": 0.8, "it": 0.8},
    "ù": {"fr": 0.4, "it": 0.8}, "ò": {"it": 1.5}, "ì": {"it": 1.5}, "œ": {"fr": 2}, "î": {"fr": 0.6},
    "û": {"fr": 0.6}, "ł": {"pl": 3}, "ż": {"pl": 3}, "ś": {"pl": 2}, "ą": {"pl": 2}, "ę": {"pl": 2},
    "ć": {"pl": 1}, "ź": {"pl": 2}, "ń": {"pl": 1}, "å": {"sv": 0.8, "da": 0.6, "no": 0.6},
    "æ": {"da": 1, "no": 0.7}, "ø": {"da": 1, "no": 0.8}, "ě": {"cs": 3}, "ř": {"cs": 3}, "ů": {"cs": 3},
    "č": {"cs": 1}, "š": {"cs": 1}, "ž": {"cs": 1}, "ğ": {"tr": 3}, "ı": {"tr": 3}, "ş": {"tr": 2},
    "á": {"es": 0.3, "pt": 0.3, "cs": 0.4}, "í": {"es": 0.4, "pt": 0.2, "cs": 0.4},
    "ó": {"es": 0.4, "pl": 0.5}, "é": {"fr": 0.5, "es": 0.2, "pt": 0.2, "cs": 0.2}, "ý": {"cs": 1},
    "ï": {"fr": 0.3, "nl": 0.5},
    "ë": {"nl": 0.5, "fr": 0.2}, "à": {"fr": 0.4, "it": 0.4, "pt": 0.3},
}  # fmt: skip
_LATIN_ENDINGS = {
    "ung": "de", "keit": "de", "lich": "de", "isch": "de", "tion": "en fr", "ing": "en", "ment": "en fr",
    "ness": "en", "ción": "es", "dad": "es", "mente": "es it pt", "ado": "es pt", "ando": "es it pt",
    "zione": "it", "zioni": "it", "iamo": "it", "ità": "it", "ção": "pt", "ções": "pt", "dade": "pt",
    "heid": "nl", "lijk": "nl", "lijke": "nl", "ijn": "nl", "eaux": "fr", "eux": "fr", "ez": "fr",
    "ość": "pl", "wać": "pl", "ania": "pl", "lar": "tr", "ler": "tr", "yor": "tr", "ssa": "fi", "ssä": "fi",
    "lla": "fi", "llä": "fi", "ista": "fi", "ille": "fi", "ování": "cs", "ost": "cs",
}  # fmt: skip
_CYRILLIC = {
    "ru": """и в не на я что он с как это по но они мы все она так его за был от то же у из бы только о
        ещё еще вы мне было есть для уже если или быть когда даже ли до меня где почему спасибо да
        нет сегодня вчера завтра сейчас здесь можно нужно можешь пожалуйста очень мой моя наш ваш
        этот эта эти к чтобы тоже без после перед при кто нас вас их ее её""",
    "uk": """і в у не на я що він з як це по але вони ми всі вона так його за був від то ж із би тільки
        про ще ви мені було є для вже якщо або бути коли навіть чи до мене де чому дякую ні сьогодні
        вчора завтра зараз тут можна треба потрібно можеш ласка дуже мій моя наш ваш цей ця ці та щоб
        також без після перед при хто нас вас їх її й""",
}
_CYRILLIC_LETTERS: dict[str, dict[str, float]] = {
    "ы": {"ru": 2}, "э": {"ru": 2}, "ё": {"ru": 2}, "ъ": {"ru": 1}, "і": {"uk": 2}, "ї": {"uk": 2},
    "є": {"uk": 2}, "ґ": {"uk": 2},
}  # fmt: skip

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


class _Evidence:
    def __init__(
        self, words: dict[str, str], letters: dict[str, dict[str, float]], endings: dict[str, str]
    ) -> None:
        codes_by_word: dict[str, list[str]] = {}
        for code, word_list in words.items():
            for word in dict.fromkeys(word_list.split()):
                codes_by_word.setdefault(word, []).append(code)
        self.words = {
            word: [(code, _shared_weight(codes)) for code in codes] for word, codes in codes_by_word.items()
        }
        self.letters = letters
        self.letter = re.compile(f"[{''.join(letters)}]")
        self.endings = {ending: codes.split() for ending, codes in endings.items()}
        self.sizes = sorted({len(ending) for ending in endings})


def _shared_weight(codes: list[str]) -> float:
    return float(1 / len(codes) ** 0.7)


@cache
def _latin_evidence() -> _Evidence:
    return _Evidence(_LATIN, _LATIN_LETTERS, _LATIN_ENDINGS)


@cache
def _cyrillic_evidence() -> _Evidence:
    return _Evidence(_CYRILLIC, _CYRILLIC_LETTERS, {})


def _detect_by_words(prose: str, evidence: _Evidence) -> str | None:
    words = _WORD.findall(prose.lower().replace("’", "'"))
    if len(words) < _MIN_WORDS:
        return None
    scores: dict[str, float] = {}
    for word in words:
        for code, weight in evidence.words.get(word) or _guess_by_ending(word, evidence):
            scores[code] = scores.get(code, 0) + weight
        if not word.isascii():
            for letter in evidence.letter.findall(word):
                for code, weight in evidence.letters[letter].items():
                    scores[code] = scores.get(code, 0) + weight
    for mark in "¿¡":
        if mark in prose and mark in evidence.letters:
            scores["es"] = scores.get("es", 0) + 2
    return _choose_surest(scores, len(words))


def _guess_by_ending(word: str, evidence: _Evidence) -> list[tuple[str, float]]:
    for size in evidence.sizes:
        codes = evidence.endings.get(word[-size:]) if len(word) > size + 1 else None
        if codes:
            return [(code, 0.5 / len(codes)) for code in codes]
    if "'" in word:  # l'heure, dell'acqua
        return [("fr", 0.6), ("it", 0.3)] if word[1] == "'" else [("it", 0.5)] if word[-2:] != "'s" else []
    return []


def _choose_surest(scores: dict[str, float], words: int) -> str | None:
    ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    if not ranked or ranked[0][1] < max(0.8, 0.12 * words):
        return None
    if len(ranked) > 1 and ranked[1][1] > 0.92 * ranked[0][1]:
        return None
    return ranked[0][0]


# Names


def parse_language_code(name: str) -> str | None:
    """The code of a language by its name: `de`, `de-AT`, `German`, `Deutsch`."""
    folded = name.strip().casefold()
    first = re.split(r"[-_]", folded, maxsplit=1)[0]
    return _CODES.get(folded) or _CODES.get(first)


_CODES = {
    name: code
    for code, names in {
        "en": "english englisch", "de": "german deutsch", "fr": "french français francais französisch",
        "es": "spanish español espanol spanisch", "it": "italian italiano italienisch",
        "pt": "portuguese português portugues", "nl": "dutch nederlands", "pl": "polish polski",
        "sv": "swedish svenska", "da": "danish dansk", "no": "norwegian norsk nb nn", "fi": "finnish suomi",
        "cs": "czech čeština cz", "tr": "turkish türkçe", "ru": "russian русский",
        "uk": "ukrainian українська", "el": "greek ελληνικά", "ar": "arabic العربية",
        "he": "hebrew עברית iw", "hi": "hindi हिन्दी",
        "ja": "japanese 日本語 jp", "zh": "chinese 中文 cn", "ko": "korean 한국어 kr", "th": "thai ไทย",
        "fa": "persian farsi فارسی",
    }.items()
    for name in (code, *names.split())
}  # fmt: skip
LANGUAGES = tuple(dict.fromkeys(_CODES.values()))
