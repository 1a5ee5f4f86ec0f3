"""Words too common to search for, in seven languages: articles, pronouns, prepositions, auxiliaries and
question words.

A common word that stays in a query costs little, since the index ranks it low. A word that is removed from a
query is never found. So words with a meaning in English or in a terminal are not listed, however common they
are elsewhere: German *die, war, hat, bin, man, den, mit, du*, French *son, ton, pour, plus,
comment, par, car, ai*, Spanish *sin, era, hay, con, dos*, Italian *come, dove, chi, io, ci*, Portuguese
*os, eu*, Dutch *door, want, met, op, dan*. For the same reason English *up, down, over, before, after* stay:
"is the server down?".

*will, may, might* and *can* are listed: as verbs they are in every third question. `query` keeps Will and May
with a capital inside a sentence, and IT, US or WHO in capitals.
"""

from __future__ import annotations

_ENGLISH = """
a about all also am an and any are arent as at be been being both but by can cannot could couldnt did didnt
do does doesnt doing dont e.g each either else etc few for from had hadnt has hasnt have havent having he
her here hers herself him himself his how however i i.e if in into is isnt it its itself just let many may
me might more most much must my myself neither no nor not of ok okay on one or other others our ours
ourselves out please shall she should shouldnt so some such than that thats the their theirs them themselves
then there these they theyre this those though through thus to too upon us very vs was wasnt we were werent
what whatever whats when where whether which while who whom whose why will with within without would wouldnt
yes yet you your youre yours yourself yourselves
ain't aren't can't couldn't didn't doesn't don't hadn't hasn't haven't he'd he'll he's here's how's i'd i'll
i'm i've isn't it'd it'll it's let's mustn't she'd she'll she's shouldn't that'll that's there's they'd
they'll they're they've wasn't we'd we'll we're we've weren't what're what's when's where's who'd who'll
who's why's won't would've wouldn't y'all you'd you'll you're you've
"""

_GERMAN = """
aber als am an auch auf aus bei beim bis bist da damit dann das dass dein deine deinem deinen deiner dem
denn der deren des dessen dich diese diesem diesen dieser dieses doch dort durch ein eine einem einen einer
eines er es euch euer eure für gegen habe haben hast hatte hatten hattest hier ich ihm ihn ihnen ihr ihre
ihrem ihren ihrer im in ins ist ja jede jedem jeden jeder jedes jetzt kann kannst kein keine keinen können
könnte mein meine meinem meinen meiner mich mir muss musste müssen nach nein nicht noch nur ob oder ohne
sehr sein seine seinem seinen seiner seit sich sie sind so soll sollen sollte um und uns unser unsere
unserem unseren unter vom von vor wann waren warst warum was weil welche welchem welchen welcher welches wem
wen wenn wer werde werden wessen wie wieder wieso wir wird wo woher wohin wurde wurden würde z.b zu zum zur
zwischen über
geht's gibt's hab's ist's war's wie's
"""

_FRENCH = """
au aux avait avec avez avoir avons ce cela celle celles celui ces cet cette ceux chez combien dans de depuis
des dont elle elles en entre es est est-ce et eux il ils je la laquelle le lequel les lesquels leur leurs
lorsque lui ma mais me mes moi mon même ne ni nos notre nous on ont ou où pas pendant peut pourquoi quand
que quel quelle quelles quels qui quoi sa se ses si sommes sont suis sur ta te tes toi très tu un une
vos votre vous y à ça étaient était été être
c'est d'un d'une j'ai l'on n'est qu'elle qu'est-ce qu'il qu'on s'est
"""

_SPANISH = """
a aunque como cual cuales cuando cuanto cuantos cuál cuáles cuándo cuánto cuántos cómo de del desde donde
durante dónde e el ella ellas ello ellos en entre es esa esas ese eso esos esta estaba estar estas este esto
estos estoy está están fue fueron fui ha haber había han has hasta he hemos la las le les lo los me mi mis
muy más mí ni no nos nosotros nuestra nuestro o otra otro para pero por porque pues que quien quién quiénes
qué se según ser si sido sino sobre soy su sus sí también tampoco te tengo tiene tienen tu tus tú un una
unas uno unos usted ustedes y ya yo él
"""

_ITALIAN = """
a abbiamo agli alla alle allo anche avere aveva che cioè ciò cosa cui da dagli dal dalla dalle degli dei del
dell della delle dello di e erano essere fra gli ha hai hanno ho i il in la le lei lo loro lui ma me mi mia
mie miei mio ne negli nei nel nella nelle no noi non nostra nostro o per perche perché però più può qual
qualche quale quali quando quanto quella quelle quelli quello questa queste questi questo se si siamo sono
sta stato su sua sue sugli sui sul sulla suo suoi ti tra tu tua tuo un una uno voi è
c'è cos'è dov'è
"""

_PORTUGUESE = """
a ao aos aquela aquele aquilo as até com como da das de dela dele deles depois do e ela elas ele eles em
entre essa esse esta estava este está estão foi foram há isso isto já lhe lhes mais mas me mesmo meu meus
minha minhas muito na nas nem no nos nossa nosso num numa não nós o onde ou para pela pelo pelos por porque
porquê quais qual quando que quem quê se sem ser será seu seus sua suas são só também te tem teu tinha tu
tua têm um uma umas uns você vocês às é
"""

_DUTCH = """
aan als bij daar dat de deze dit dus een en er geen had hadden heb hebben heeft het hier hij hun ik in is ja
je jij jou jouw jullie kan kunnen kunt maar mij mijn moet moeten na naar nee niet nog nu of om omdat ons
onze ook te uit uw van voor waar waarom wanneer waren was wat we wel welk welke werd wie wij worden wordt
zal ze zeer zich zij zijn zo zonder zou
"""

STOPWORDS = frozenset(
    word
    for language in (_ENGLISH, _GERMAN, _FRENCH, _SPANISH, _ITALIAN, _PORTUGUESE, _DUTCH)
    for word in language.split()
)
