from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.text.language import LANGUAGES, detect_language, parse_language_code

SENTENCES = {
    "en": """
        Can you move the meeting with Priya to Thursday afternoon?
        The build broke again after the last merge.
        I'd rather ship the small fix first.
        Where did we put the invoices from March?
        Remind me to water the tomatoes when it gets dry.
        This is the third time the printer has jammed.
        She prefers tea, but coffee will do.
        We should talk about the budget before Friday.
        My flight leaves at six in the morning.
        Nobody told them that the office was closed.
        How much flour do I need for twelve rolls?
        Let's keep the old logo for another year.
        The dog slept through the whole storm.
        Please summarise the notes from yesterday.
        Our landlord wants to raise the rent.
        What was the name of that little bakery?
        I can't find my keys anywhere.
        They painted the fence green and regretted it.
        Two of the servers are out of memory.
        Could someone look at the failing tests?""",
    "de": """
        Kannst du den Termin mit Priya auf Donnerstag verschieben?
        Der Drucker klemmt schon wieder.
        Ich brauche die Rechnung vom März noch heute.
        Wo haben wir letztes Jahr die Zelte gelagert?
        Die Katze schläft seit Stunden auf meiner Jacke.
        Bitte fasse das Protokoll kurz zusammen.
        Unser Vermieter will die Miete erhöhen.
        Das Brot muss eine Stunde gehen.
        Wie hieß noch mal der Bäcker am Markt?
        Wir sollten vor Freitag über das Budget reden.
        Niemand wusste, dass das Büro geschlossen war.
        Mein Zug fährt um sechs Uhr früh ab.
        Zwei Server haben keinen Speicher mehr.
        Sie trinkt lieber Tee als Kaffee.
        Erinnere mich daran, die Tomaten zu gießen.
        Der Ofen ist noch zu heiß zum Öffnen.
        Wann kommt die Lieferung aus Hamburg an?
        Ich finde meine Schlüssel nicht.
        Lass uns das alte Logo behalten.
        Gestern Abend ist der Strom ausgefallen.""",
    "fr": """
        Peux-tu déplacer la réunion avec Priya à jeudi ?
        L'imprimante est encore bloquée.
        J'ai besoin de la facture de mars aujourd'hui.
        Où avons-nous rangé les tentes l'année dernière ?
        Le chat dort sur ma veste depuis des heures.
        Résume le compte rendu en quelques lignes.
        Notre propriétaire veut augmenter le loyer.
        Il faut laisser reposer la pâte une heure.
        Comment s'appelait la petite boulangerie du coin ?
        On devrait parler du budget avant vendredi.
        Personne ne savait que le bureau était fermé.
        Mon train part à six heures du matin.
        Deux serveurs n'ont plus de mémoire.
        Elle préfère le thé au café.
        Rappelle-moi d'arroser les tomates.
        Le four est encore trop chaud.
        Quand arrive la livraison de Lyon ?
        Je ne trouve plus mes clés.
        Gardons l'ancien logo encore un an.
        Hier soir, il y a eu une panne de courant.""",
    "es": """
        ¿Puedes mover la reunión con Priya al jueves?
        La impresora se ha atascado otra vez.
        Necesito la factura de marzo hoy mismo.
        Dónde guardamos las tiendas el año pasado
        El gato lleva horas durmiendo sobre mi chaqueta.
        Resume el acta en pocas líneas.
        Nuestro casero quiere subir el alquiler.
        Hay que dejar reposar la masa una hora.
        ¿Cómo se llamaba la panadería de la esquina?
        Deberíamos hablar del presupuesto antes del viernes.
        Nadie sabía que la oficina estaba cerrada.
        Mi tren sale a las seis de la mañana.
        Dos servidores se han quedado sin memoria.
        Ella prefiere el té al café.
        Recuérdame regar los tomates.
        El horno todavía está demasiado caliente.
        Cuándo llega el envío de Valencia
        No encuentro mis llaves por ninguna parte.
        Vamos a mantener el logo antiguo un año más.
        Anoche se fue la luz en todo el barrio.""",
    "it": """
        Puoi spostare la riunione con Priya a giovedì?
        La stampante si è bloccata di nuovo.
        Mi serve la fattura di marzo entro oggi.
        Dove abbiamo messo le tende l'anno scorso?
        Il gatto dorme da ore sulla mia giacca.
        Riassumi il verbale in poche righe.
        Il padrone di casa vuole aumentare l'affitto.
        L'impasto deve riposare per un'ora.
        Come si chiamava il panificio all'angolo?
        Dovremmo parlare del budget prima di venerdì.
        Nessuno sapeva che l'ufficio era chiuso.
        Il mio treno parte alle sei del mattino.
        Due server non hanno più memoria.
        Lei preferisce il tè al caffè.
        Ricordami di annaffiare i pomodori.
        Il forno è ancora troppo caldo.
        Quando arriva la consegna da Torino?
        Non trovo più le mie chiavi.
        Teniamo il vecchio logo ancora un anno.
        Ieri sera è andata via la corrente.""",
    "pt": """
        Podes mudar a reunião com a Priya para quinta-feira?
        A impressora encravou outra vez.
        Preciso da fatura de março ainda hoje.
        Onde guardámos as tendas no ano passado?
        O gato dorme há horas em cima do meu casaco.
        Resume a ata em poucas linhas.
        O senhorio quer aumentar a renda.
        A massa tem de descansar uma hora.
        Como se chamava a padaria da esquina?
        Devíamos falar do orçamento antes de sexta.
        Ninguém sabia que o escritório estava fechado.
        O meu comboio parte às seis da manhã.
        Dois servidores ficaram sem memória.
        Ela prefere chá a café.
        Lembra-me de regar os tomates.
        O forno ainda está quente demais.
        Quando chega a entrega do Porto?
        Não encontro as minhas chaves.
        Vamos manter o logótipo antigo mais um ano.
        Ontem à noite faltou a luz no bairro todo.""",
    "nl": """
        Kun je de vergadering met Priya naar donderdag verplaatsen?
        De printer zit alweer vast.
        Ik heb de factuur van maart vandaag nog nodig.
        Waar hebben we vorig jaar de tenten opgeborgen?
        De kat slaapt al uren op mijn jas.
        Vat de notulen kort samen.
        Onze huisbaas wil de huur verhogen.
        Het deeg moet een uur rusten.
        Hoe heette dat bakkertje op de hoek?
        We moeten voor vrijdag over het budget praten.
        Niemand wist dat het kantoor gesloten was.
        Mijn trein vertrekt om zes uur 's ochtends.
        Twee servers hebben geen geheugen meer.
        Zij drinkt liever thee dan koffie.
        Help me onthouden dat ik de tomaten water geef.
        De oven is nog te heet om te openen.
        Wanneer komt de levering uit Utrecht?
        Ik kan mijn sleutels niet vinden.
        Laten we het oude logo nog een jaar houden.
        Gisteravond viel de stroom uit.""",
}
OTHERS = {
    "pl": """Czy możesz przenieść spotkanie na czwartek?
        Drukarka znowu się zacięła.
        Potrzebuję faktury z marca jeszcze dzisiaj.""",
    "sv": """Kan du flytta mötet med Priya till torsdag?
        Skrivaren har fastnat igen.
        Katten har sovit på min jacka i flera timmar.""",
    "da": """Kan du flytte mødet med Priya til torsdag?
        Jeg har brug for fakturaen fra marts i dag.
        Ingen vidste, at kontoret var lukket.""",
    "no": """Jeg trenger fakturaen fra mars i dag, takk.
        Hva het det lille bakeriet på hjørnet?
        Ingen visste at kontoret var stengt, så vi ble stående ute.""",
    "fi": """Voitko siirtää palaverin torstaille?
        Tulostin on taas jumissa.
        Kukaan ei tiennyt, että toimisto oli kiinni.""",
    "cs": """Můžeš přesunout schůzku na čtvrtek?
        Tiskárna se zase zasekla.
        Potřebuju fakturu z března ještě dnes.""",
    "tr": """Toplantıyı perşembe gününe alabilir misin?
        Yazıcı yine sıkıştı, ne yapalım?
        Mart faturasına bugün ihtiyacım var.""",
    "ru": """Можешь перенести встречу на четверг?
        Принтер опять застрял, что делать?
        Мне нужен мартовский счёт сегодня.""",
    "uk": """Можеш перенести зустріч на четвер?
        Принтер знову застряг, що робити?
        Мені потрібен березневий рахунок сьогодні.""",
    "el": """Μπορείς να μεταφέρεις τη συνάντηση;
        Καλημέρα""",
    "ar": """هل يمكنك تأجيل الاجتماع إلى يوم الخميس؟
        مرحبا""",
    "he": """אפשר להעביר את הפגישה ליום חמישי?
        שלום""",
    "hi": """क्या आप बैठक को गुरुवार तक टाल सकते हैं?
        नमस्ते""",
    "ja": """木曜日に会議を移してもらえますか？
        PRをレビューしてください
        ありがとう""",
    "zh": """你能把会议改到星期四吗？
        谢谢
        這個問題很緊急。""",
    "ko": """회의를 목요일로 옮겨 줄 수 있어요?
        감사합니다""",
    "th": """ช่วยเลื่อนประชุมไปวันพฤหัสบดีได้ไหม
        ขอบคุณ""",
}


def sentences(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("code", SENTENCES)
def test_nine_of_ten_short_sentences_are_known_and_hardly_any_is_taken_for_another(code: str) -> None:
    said = sentences(SENTENCES[code])
    found = [detect_language(one) for one in said]
    assert len(said) == 20
    assert found.count(code) >= 18, [*zip(said, found, strict=True)]
    assert sum(one not in (code, None) for one in found) <= 1, [*zip(said, found, strict=True)]


@pytest.mark.parametrize("code", OTHERS)
def test_other_languages_are_known_or_left_open(code: str) -> None:
    found = [detect_language(one) for one in sentences(OTHERS[code])]
    assert set(found) <= {code, None}
    assert 2 * found.count(code) > len(found), found


@pytest.mark.parametrize("text", ["", "ok", "Deploy", "no problem", "12345 678", "!!!", "🎉🎉🎉", "\0\ud800"])
def test_too_little_says_nothing(text: str) -> None:
    assert detect_language(text) is None


def test_names_and_identifiers_are_no_language() -> None:
    assert detect_language("Zylka Brantov Quimby Orlesh") is None


def test_code_and_addresses_do_not_count() -> None:
    code = "```python\nfor the in that: if it is not the: print('and of the')\n```"
    assert detect_language(f"Was macht das hier?\n{code}\nhttps://example.com/the/and/of/this") == "de"


def test_a_foreign_word_does_not_change_the_language() -> None:
    assert detect_language("We say 改善 for getting better a little every day") == "en"
    assert detect_language("デプロイ前にCIを確認してください") == "ja"


@pytest.mark.parametrize(
    ("name", "code"),
    [("de", "de"), ("de-AT", "de"), ("German", "de"), ("Deutsch", "de"), ("pt_BR", "pt"), ("nb", "no"),
     ("日本語", "ja"), ("zh-Hans", "zh"), ("Klingon", None), ("", None)],
)  # fmt: skip
def test_languages_have_codes_and_names(name: str, code: str | None) -> None:
    assert parse_language_code(name) == code


@given(st.text(max_size=400))
def test_any_text_gives_a_known_code_or_none(text: str) -> None:
    assert detect_language(text) in (*LANGUAGES, None)
