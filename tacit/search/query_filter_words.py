"""The word lists of the query filter, as data.

SPACED lists hold words and phrases between commas, compared without case and accents, as whole words.
UNSPACED lists are for scripts without spaces: regular expressions between bars, matched anywhere in a run of
letters.
"""

from __future__ import annotations

_DAYS = "monday tuesday wednesday thursday friday saturday sunday night week weekend month year summer"
_TAGE = "montag dienstag mittwoch donnerstag freitag samstag sonntag abend monat herbst sommer winter"

# Phrases that ask for earlier conversations or knowledge.
MEMORY_SPACED = f"""
remember, remembers, remembered, remind me, reminder, recall, forgot, forgotten, don't forget,
last time, {", ".join(f"last {day}" for day in _DAYS.split())}, last winter, yesterday,
the other day, a while ago, days ago, weeks ago, months ago, years ago, back then, previously,
like before, as before, same as before, as usual, as discussed, as agreed, as planned, as promised, as i said,
like i said, as we said, as mentioned, i told you, i said, i mentioned, i already told, you told me,
you said, you mentioned, you suggested, you promised, did i tell, did i say, did i mention, did i ask,
have i told, have i mentioned, did you say, what did i, where did i, when did i, who did i, which did i,
did we, have we, had we, we decided, we agreed, we discussed, we talked, we spoke, we said, we planned,
we chose, we picked, we settled on, was decided, was agreed, previous conversation, earlier conversation,

erinnerst, erinnern, erinnere, erinner mich, weißt du noch, wisst ihr noch, wissen sie noch,
letztes mal, letzte mal, letzten mal, letzte woche, letzter woche, letztes jahr, letzten jahr,
letzte nacht, letztes wochenende, {", ".join(f"letzten {day}" for day in _TAGE.split())},
gestern, vorgestern, neulich, kürzlich, vor kurzem, damals, wie besprochen, wie vereinbart,
wie abgemacht, wie ausgemacht, wie gesagt, wie immer, wie beim letzten, hatten wir, haben wir,
wir hatten, wir haben, wir wollten, hab ich dir, habe ich dir, hatte ich dir, ich hab dir, ich habe dir,
ich hatte dir, hab ich gesagt, habe ich gesagt, hast du gesagt, du hast gesagt, du hattest, hattest du,
du sagtest, besprochen, vergessen, nicht vergiss, vergiss nicht, wie hieß, wie hiess, war das nochmal,

te souviens, tu te rappelles, vous souvenez, souviens-toi, rappelle-moi, rappelle-toi, la dernière fois,
hier soir, avant-hier, la semaine dernière, le mois dernier, l'an dernier, l'autre jour, comme convenu,
comme d'habitude, on avait dit, on a décidé, on avait décidé, nous avons décidé, je t'ai dit,
je t'avais dit, tu m'as dit, tu avais dit,
recuerdas, recuerda, recuérdame, te acuerdas, acuérdate, la última vez, ayer, anteayer,
la semana pasada, el mes pasado, el año pasado, el otro día, decidimos, quedamos en, como acordamos,
como siempre, te dije, me dijiste, no olvides,
ricordi, ti ricordi, ricordami, l'altra volta, l'ultima volta, ieri, abbiamo deciso, ti ho detto,
lembra, lembras, da última vez, ontem,
weet je nog, herinner, vorige keer, gisteren, hebben we, pamiętasz, wczoraj, ostatnio,
помнишь, помните, напомни, в прошлый раз, вчера, мы решили, hatırlıyor musun, geçen sefer, dün
"""
MEMORY_UNSPACED = (
    "覚えて|憶えて|おぼえて|覚えとい|思い出|忘れ|前回|この前|こないだ|この間|以前|先日|先週|先月|昨日|一昨日|昨夜"
    # Not 名前に (to the name), 午前に (in the morning), 会議の前に (before the meeting).
    "|昨年|さっき|(?<![名午駅目手の])前に|(?<!お)っけ(?![いんな])|いつもの|約束した|決めたよね|話したよね|言ったよね"
    "|记得|記得|上次|上回|上一次|之前|先前|前几天|前幾天|前天|昨天|昨晚|上周|上週|上星期|上个月|上個月|去年"
    "|说过|說過|讲过|講過|提过|提過|聊过|聊過|讨论过|討論過|告诉过|告訴過|决定过|决定了|决定的|說好|说好|约好|約好"
    "|我们决定|我們決定|忘了|忘记|忘記|提醒我|和以前一样|老样子"
    "|기억|지난번|저번에|어제|지난주|우리가 정한"
)

# Who says one of these in a technical message speaks of a thing of their own, that may have been noted.
PERSONAL_SPACED = """
my, mine, we, we're, we've, we'd, we'll, our, ours, project, projects, team, teams, customer,
customers, product, products, repo, repos, repository, deployment, deployments,

mein, meine, meinem, meinen, meiner, meines, wir, unser, unsere, unserem, unseren, unserer, unseres,
projekt, projekte, projekts, projekten, kunde, kunden, kundin, kundinnen, produkt, produkte,

mon, ma, mes, notre, nos, nous, projet, projets, équipe, mi, mis, nuestro, nuestra, nuestros, nuestras,
nosotros, proyecto, equipo, cliente, clientes, producto,

mio, mia, nostro, nostra, progetto, meu, minha, nosso, nossa, projeto, mijn, ons, onze,

мой, моя, моё, мои, наш, наша, наши, мы, проект
"""
PERSONAL_UNSPACED = (
    "私の|わたしの|僕の|ぼくの|俺の|うちの|我々|私たち|私達|弊社|当社|わが社|プロジェクト|チーム|顧客|お客|製品"
    "|リポジトリ|我的|我们|我們|咱们|项目|項目|專案|团队|團隊|客户|客戶|产品|產品|仓库"
    "|(?<![가-힣])내 |우리|프로젝트"
)

# One of these makes a message technical.
TECHNICAL_SPACED = """
error, errors, error message, stack trace, stack traces, stacktrace, stacktraces, traceback,
call stack, stack overflow, segfault, segmentation fault, core dump, core dumped, kernel panic,
syntax error, null pointer, exit code, exit status, status code, undefined is not, stdout, stderr,
stdin, npm, npx, pnpm, yarn add, yarn install, pip install, pip3, pip freeze, with pip, via pip,
pipenv, venv, virtualenv, docker, dockerfile, docker-compose, podman, kubectl, kubernetes, k8s,
minikube, bash, zsh, powershell, bashrc, zshrc, sudo, apt-get, systemctl, journalctl, chmod, chown,
localhost, makefile, cmake, gcc, clang, rustc, cargo build, cargo test, cargo run, webpack, eslint,
tsc, pytest, mypy, regex, compile, compiles, compiling, compiler, debugger, breakpoint, merge conflict,
git push, git pull, git commit, git rebase, git merge, git checkout, git clone, unit test, unit tests,

fehler, fehlermeldung, fehlermeldungen, fehlercode, kompilieren, kompiliert, kompiliere,
kompilierfehler, laufzeitfehler, syntaxfehler, speicherzugriffsfehler, abgestürzt, stürzt ab, debuggen,
quelltext, quellcode,

erreur, erreurs, errores, compilar, compilación, depurar, errore, erro, fout, foutmelding, ошибка,
ошибку, компиляция, hata, błąd
"""
TECHNICAL_UNSPACED = (
    "エラー|例外が|例外を|スタックトレース|コンパイル|デバッグ|バグ|関数|ビルドが|ビルドに|ビルドを|コマンドライン"
    "|クラッシュ|ソースコード|报错|報錯|错误|錯誤|异常|異常|堆栈|堆疊|编译|編譯|调试|調試|除錯|崩溃|崩潰|函数|函數"
    "|代码|代碼|程式碼|空指针|段错误|오류|에러|컴파일"
)
# Two different ones of these do, too: each has another meaning of its own.
WEAK_TECHNICAL_SPACED = """
stack, stacks, trace, traces, pip, shell, script, scripts, bug, bugs, crash, crashes, crashed, server,
timeout, exception, exceptions, compiled, compilation, skript, absturz, ausnahme, excepción
"""

# Nothing but these, and such as may stand beside them, is an acknowledgement.
ACKNOWLEDGED_SPACED = """
ok, okay, okey, oki, okidoki, okey dokey, okie dokie, okie, k, kk, kay, mkay, alright, all right,
right, all good, all clear, all set, got it, gotcha, got you, i see, i understand, understood,
i got it, noted, copy that, roger, roger that, will do, sure, sure thing, of course, certainly,
absolutely, definitely, exactly, indeed, agreed, deal, fair, fair enough, makes sense, sounds good,
sounds great, sounds fine, looks good, looks great, looks good to me, lgtm, works for me, that works,
works, good, very good, good job, good work, good stuff, good to know, good idea, great, great job,
great work, great stuff, nice, nice one, nice work, well done, cool, awesome, amazing, perfect,
excellent, wonderful, fantastic, brilliant, lovely, sweet, neat, super, wow, yay, hooray, fine,
thats fine, thats great, thats good, thats perfect, thats right, thats correct, thats all, thats it,
correct, thank you, thank u, thankyou, thanks, thanks a lot, thanks so much, thanks a bunch,
thanks again, many thanks, much appreciated, appreciated, appreciate it, i appreciate it, thx, thnx,
tnx, ty, tysm, tyvm, cheers, ta, no problem, np, no worries, nw, youre welcome, yw, my pleasure, yes,
yes please, yep, yup, yeah, yea, ya, aye, affirmative, go ahead, go for it, do it, please do, no, nope,
nah, no thanks, no thank you, not now, never mind, nevermind, nvm, true, true that, true enough,
same here, me too, hm, hmm, mhm, mm, mmhm, uh huh, aha, ah, oh, ooh, oh ok, oh i see, haha, hahaha,
hehe, lol, rofl, lmao, xd, love it, like it, i like it, i love it, not bad,

ja, jo, jup, jep, jap, jawohl, jawoll, ja bitte, ja gern, ja gerne, ja genau, nein, nee, nö, ne,
nein danke, doch, danke, danke dir, danke dir sehr, danke schön, dankeschön, danke sehr,
danke vielmals, danke euch, danke ihnen, dank dir, vielen dank, vielen lieben dank, herzlichen dank,
besten dank, tausend dank, lieben dank, hab dank, merci, bitte, bitte schön, bitteschön, gern, gerne,
gern geschehen, sehr gern, kein problem, kein thema, keine ursache, alles klar, alles gut,
alles bestens, alles paletti, klar, na klar, ist klar, schon klar, klaro, geht klar, geht in ordnung,
in ordnung, einverstanden, abgemacht, passt, passt so, passt schon, passt perfekt, das passt, stimmt,
das stimmt, stimmt genau, genau, eben, richtig, korrekt, verstanden, verstehe, ich verstehe, habs,
hab ich, hab verstanden, gut, sehr gut, gut so, schön, sehr schön, prima, toll, klasse, spitze, top,
perfekt, wunderbar, ausgezeichnet, genial, großartig, herrlich, geil, stark, fein, freut mich,
mach das, mach nur, mach mal, nur zu, okee, oke, sicher, natürlich, selbstverständlich, egal,
macht nichts, schon gut, lass gut sein, ach so, achso, aso, ah ja, oha, hihi, servus danke,

oui, non, si, daccord, dac, entendu, compris, bien compris, jai compris, ça marche, ça va, cest bon,
cest parfait, cest noté, très bien, bien, bon, parfait, super merci, merci beaucoup, merci bien,
mille mercis, je vous remercie, de rien, pas de souci, pas de problème, bien sûr, volontiers, génial,

vale, sí, claro, claro que sí, entendido, de acuerdo, gracias, muchas gracias, mil gracias,
te lo agradezco, de nada, perfecto, muy bien, bueno, listo, estupendo, está bien, por favor sí,

sì, va bene, certo, capito, ho capito, perfetto, grazie, grazie mille, prego, daccordo, ottimo, bene,

sim, não, tá, tá bom, beleza, obrigado, obrigada, muito obrigado, muito obrigada, valeu, perfeito, oké,
dank je, dank je wel, dankjewel, dank u, bedankt, graag gedaan, goed, duidelijk, begrepen, tak, nie,
dobrze, dzięki, dziękuję, jasne, rozumiem,

ок, окей, да, нет, ага, угу, хорошо, понятно, понял, поняла, ясно, спасибо, большое спасибо,
спасибо большое, отлично, супер, пожалуйста,

tamam, evet, hayır, hayir, teşekkürler, teşekkür ederim, sağ ol, anladım,
anladim, tack, takk, tak skal du have, kiitos
"""
ACKNOWLEDGED_UNSPACED = (
    "はい|はーい|はいはい|うん|ええ|ああ|いいえ|いえ|いえいえ|ううん|いや|了解|りょうかい|りょ|承知|承知いたしました"
    "|かしこまりました|畏まりました|わかりました|分かりました|わかった|分かった|わかります|おけ|おっけー|おっけ|オッケー"
    "|オッケ|オーケー|なるほど|そうですね|そうだね|そうです|そうだ|そっか|そうか|そうなんだ|そうなんですね|確かに|たしかに"
    "|ありがとう|ありがと|ありがとうございます|ありがとうございました|有難う|有難うございます|有り難う|あざす|あざっす"
    "|どうも|サンキュー|感謝|感謝します|感謝です|助かります|助かりました|助かった|助かる|お願い|お願いします|お願いいたします"
    "|お願い致します|よろしく|宜しく|よろしくお願いします|よろしくお願いいたします|大丈夫|問題ない|問題ありません|結構です"
    "|いいね|いいです|いいよ|良いです|良いね|よかった|良かった|すごい|凄い|さすが|素晴らしい|すばらしい|最高|完璧|ばっちり"
    "|バッチリ|やった|どういたしまして|もちろん|お疲れ様|お疲れさま|お疲れ様です|お疲れ様でした|笑"
    "|好|好的|好吧|好呀|好啊|好嘞|好滴|好哒|好了|好耶|行|行吧|可以|可以的|没问题|沒問題|没事|沒事|没关系|沒關係|知道了"
    "|我知道了|明白|明白了|懂了|我懂了|了解了|收到|收到了|谢谢|謝謝|谢谢你|謝謝你|谢谢您|謝謝您|谢谢大家"
    "|謝謝大家|感谢你|感谢您|多谢|多謝|感谢|非常感谢|十分感谢|太感谢了|辛苦了|辛苦|麻烦了|麻煩了|不客气|不客氣|嗯|唔|哦|噢|喔|哈|哈哈|嘿嘿|呵呵|是|是的|是啊|对|對|对的"
    "|對的|没错|沒錯|不|不是|不用|不用了|不必|不要|不了|当然|當然|太好了|太棒了|很好|非常好|真棒|棒|赞|讚|完美|厉害|厲害"
    "|妥了|搞定|就这样|就這樣|那好"
    "|네|넵|넹|예|응|어|아니|아니요|아니오|감사|감사합니다|감사해요|고마워|고마워요|고맙습니다|알겠습니다|알겠어요|알았어"
    "|알았어요|좋아|좋아요|좋습니다|그래|그래요|오케이|ㅇㅋ|ㅇㅇ|ㅋㅋ|ㅎㅎ|괜찮아|괜찮아요|확인|확인했습니다"
)
BESIDE_SPACED = """
and, so, very, much, too, then, well, a lot, lots, so much, very much, really, just, now, all, both,
man, mate, buddy, bro, dude, guys, everyone, you, to you, dear, my friend, for now, for that, for this,
for the help, for your help, for helping, for everything, for the info, for letting me know,

und, sehr, dann, dir, euch, ihnen, mal, schon, noch mal, nochmal, erstmal, dafür, auch, das, ist,
für die hilfe, für deine hilfe, für die info, vielmals, wirklich, echt, total, ach, na, also,

et, très, beaucoup, alors, mais, ça, vraiment, pour tout, y, muy, mucho, entonces, por todo, e, molto,
allora, muito, en, heel, erg, zo, и, очень, ну, çok
"""
BESIDE_UNSPACED = (
    "です|でした|ます|しました|いたしました|致しました|ね|よ|な|わ|す|じゃ|では|それで|これで|本当に|ほんとに|ほんと"
    "|どうも|とても|すごく|大変|で|さん|先生|了|的|吧|啊|呀|啦|哈|哟|喽|那|就|都|很|太|非常|真|真的|啊啊|요|정말"
)
