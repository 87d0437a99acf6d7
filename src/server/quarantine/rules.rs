//! The built-in rules: names, and patterns that ignore case.
//!
//! Every pattern is matched against several views of a text ([`super::views`]), one of which has no accents. Patterns
//! span at most one sentence and a few words, so that a text about instructions is not a hit by itself. A match in
//! which the group `unless` participates is discarded: the group matches words before or after the phrase that are
//! typical of ordinary texts.

/// Replaces `\w` in a built-in pattern, and negated `\W`: the ASCII letters and digits and, roughly, the letters of all
/// scripts. Unicode's own class has 770 ranges; with it the automata of these patterns, which repeat it in nested
/// loops, took 90 MB. This class has a dozen ranges, and differs only in signs that occur in no word of a rule. It contains
/// each letter in both cases, so that compiling it need not add them, which took most of the time.
const WORD: &str = r"0-9A-Za-z_\u{B5}\u{C0}-\u{1FFF}\u{2126}\u{212A}\u{212B}\u{2C00}-\u{2DFF}\u{3040}-\u{D7FF}\u{F900}-\u{FDFF}\u{FE70}-\u{FEFC}\u{20000}-\u{3FFFF}";

/// Returns a built-in pattern with [`WORD`] for its word classes, alone or in brackets. They are read with case, as they
/// contain both.
pub(super) fn plain(pattern: &str) -> String {
    let mut plain = String::with_capacity(2 * pattern.len());
    let mut signs = pattern.chars();
    // The place of an open bracket, and whether a word class is in it.
    let mut bracket: Option<(usize, bool)> = None;
    while let Some(sign) = signs.next() {
        let escaped = if sign == '\\' { signs.next() } else { None };
        match (sign, escaped, &mut bracket) {
            (_, Some('w'), Some((_, has_word))) => {
                *has_word = true;
                plain.push_str(WORD);
            }
            (_, Some('w'), None) => plain.push_str(&format!("(?-i:[{WORD}])")),
            (_, Some('W'), None) => plain.push_str(&format!("(?-i:[^{WORD}])")),
            ('[', None, None) => {
                bracket = Some((plain.len(), false));
                plain.push('[');
            }
            (']', None, Some((at, has_word))) => {
                plain.push(']');
                if *has_word {
                    plain.insert_str(*at, "(?-i:");
                    plain.push(')');
                }
                bracket = None;
            }
            _ => plain.extend([Some(sign), escaped].into_iter().flatten()),
        }
    }
    plain
}

/// Names and patterns of the rules. Several patterns may have the same name.
pub(super) const USUAL: &[(&str, &str)] = &[
    (
        "ignore-instructions",
        r"\b(ignore|disregard|forget|override|bypass|discard|(do not|don't|stop) (follow|obey)(ing)?|pay no attention to)\b(\W+\w+){0,4}?\W+(previous|prior|above|earlier|preceding|former|all|any|your|system|these|those)\b(\W+\w+){0,3}?\W+(instructions?|prompts?|directives|guidance|commands|restrictions)\b",
    ),
    (
        "ignore-instructions",
        r"(?P<unless>\b(should|will|may|can|could|would|might|does|to|we|they|it|i|which|that|not|browsers?)\s+)?\b(ignore|disregard|forget|override|bypass|discard|(do not|don't|stop) (follow|obey)(ing)?|pay no attention to)\b(\W+\w+){0,4}?\W+(previous|prior|above|earlier|preceding|former|all|any|your|system|these|those)\b(\W+\w+){0,3}?\W+(rules|directions|guidelines)\b",
    ),
    (
        "ignore-instructions",
        r"\b(ignore|disregard|forget|discard)\W+((all|any|of|the|your|my|these|those)\W+){1,3}?(instructions|prompts?|rules|directions|guidelines|directives|guidance)\W+((that|which|you|were|was|have|been|given|stated|written|listed|from|i|we|they)\W+){0,4}?(above|before|earlier|previously|so far|until now)\b",
    ),
    (
        "ignore-instructions",
        r"(?P<unless>\b(don't|do not|never|not|cannot|can't|to|we|i|they|will|would)\s+)?\b(ignore|disregard|forget|discard)\W+(about\W+)?(everything|anything|all)\W+((that|which|of|what|has|have|had|been|was|were|you|i|we|they|is|came|come|this|the)\W+){0,5}?(told|said|instructed|written above|(above|before|previously|earlier|prior)\s*([.,;:!]|$|(and|then|instead|now)\b))",
    ),
    (
        "ignore-instructions",
        r"\b(ignore|disregard|forget|discard)\W+(all\W+)?(of\W+)?the\W+(above|foregoing|preceding|previous)[\s,.;:!]+(and|then|instead|now|do|you|your|from now)\b",
    ),
    // Spelled-out letters after joining, and words without separators.
    (
        "ignore-instructions",
        r"\b(ignore|disregard|forget|bypass)(all|any|every|the|your|of|my|these)*(previous|prior|above|earlier|preceding|former)(system|safety)?(instructions?|prompts?|rules|guidelines|directives|guidance)",
    ),
    // "Ignore everything that was said", in other languages
    (
        "ignore-instructions",
        r"\b(ignorier\w*|vergiss|vergesst|vergessen sie|missachte\w*)\W+(bitte\W+)?alles\b[^.!?]{0,30}?\b(gesagt|gesagte|gesagten|bisherige|vorherige|obige|oben|davor|vorher|zuvor|bisher|mitgeteilt|aufgetragen|gelernt|wei(ß|ss)t)\b|\b(ignore[rz]?|oublie[rz]?)\W+tout\W+ce\W+(qui|que|qu)\b[^.!?]{0,30}?\b(pr[ée]c[èe]de|avant|dit|ci-dessus|appris|demand[ée])|\b(ignora|ignore|ignorad|olvida|olvide|olvidad)\W+todo\W+lo\b[^.!?]{0,30}?\b(anterior|dicho|dijeron|dije|previo|arriba)\b|\b(ignore|esque(ç|c)a|desconsidere)\W+tudo\b[^.!?]{0,30}?\b(acima|dito|disseram|anterior|antes)\b|\b(ignora|ignorate|dimentica|dimenticate)\W+tutto\b[^.!?]{0,30}?\b(sopra|detto|precede|precedente|prima)\b",
    ),
    (
        "ignore-instructions",
        r"(забудь|забудьте|игнорируй|игнорируйте)\W+вс[её]\b[^.!?]{0,30}?(сказа|говори|выше|раньше|прежде|до этого)|(忘记|忘記|忽略|无视|無視)[^。！？.!?]{0,6}(之前|以上|上面|前面)[^。！？.!?]{0,6}(一切|所有|全部|内容|內容)|vergeet\W+alles\b[^.!?]{0,30}?\b(gezegd|hierboven|verteld|eerder)\b",
    ),
    // German, Dutch
    (
        "ignore-instructions",
        r"\b(ignorier\w*|vergiss|vergesst|vergessen sie|missacht\w*|verwirf|verwerf\w*|umgeh\w*)\b(\W+\w+){0,4}?\W+(vorherige\w*|bisherige\w*|vorige\w*|obige\w*|fr(ü|u|ue)here\w*|vorangegangene\w*|vorhergehende\w*|alle|s(ä|a|ae)mtliche\w*|deine\w*|system\w*)\b(\W+\w+){0,3}?\W+(system)?(anweisung\w*|instruktion\w*|befehle\w*|regeln|vorgaben|prompts?|richtlinien)\b",
    ),
    (
        "ignore-instructions",
        r"\b(befolge?|beachte?)\b(\W+\w+){0,2}?\W+(vorherige\w*|bisherige\w*|obige\w*|fr(ü|u|ue)here\w*)\W+(anweisung\w*|instruktion\w*|regeln)\W+nicht\b",
    ),
    (
        "ignore-instructions",
        r"\b(negeer|vergeet)\b(\W+\w+){0,3}?\W+(vorige|eerdere|voorgaande|bovenstaande|alle)\b(\W+\w+){0,3}?\W+(instructies|regels|opdrachten|aanwijzingen)\b",
    ),
    // French, Spanish, Portuguese, Italian: the adjective usually follows the noun.
    (
        "ignore-instructions",
        r"\b(ignore[rz]?|oublie[rz]?|n[ée]glige[rz]?|(ne )?(tiens|tenez|tenir) (pas|aucun) compte)\b(\W+\w+){0,4}?\W+(instructions?|consignes?|r[èe]gles|directives?)\b(\W+\w+){0,3}?\W+(pr[ée]c[ée]dente?s?|ant[ée]rieure?s?|ci-dessus|pr[ée]alables?|du syst[èe]me)\b",
    ),
    (
        "ignore-instructions",
        r"\b(ignore[rz]?|oublie[rz]?)\b(\W+\w+){0,3}?\W+(pr[ée]c[ée]dentes|anciennes|toutes tes|toutes vos)\W+(instructions?|consignes?|r[èe]gles|directives?)\b",
    ),
    (
        "ignore-instructions",
        r"\b(ignor(a|e|ad|ar|en)|olvid(a|e|ad|ar|en)|descart(a|e|ad|ar)|omit(e|a|ir)|haz caso omiso de|no sigas)\b(\W+\w+){0,4}?\W+(instrucciones|reglas|directrices|indicaciones|[óo]rdenes)\b(\W+\w+){0,3}?\W+(anteriores|previas|precedentes|de arriba|del sistema)\b",
    ),
    (
        "ignore-instructions",
        r"\b(ignor(e|a|em|ar)|esque(ç|c)(a|am)|esquecer|desconsider(e|em|ar)|descart(e|em|ar))\b(\W+\w+){0,4}?\W+(instru(ç|c)(õ|o)es|regras|diretrizes|ordens|orienta(ç|c)(õ|o)es)\b(\W+\w+){0,3}?\W+(anteriores|pr[ée]vias|precedentes|acima|do sistema)\b",
    ),
    (
        "ignore-instructions",
        r"\b(ignor(a|ate|are)|dimentic(a|ate|are)|trascur(a|ate|are)|non (seguire|considerare))\b(\W+\w+){0,4}?\W+(istruzioni|regole|direttive|indicazioni)\b(\W+\w+){0,3}?\W+(precedenti|qui sopra|di cui sopra|del sistema)\b",
    ),
    // Polish, Turkish, Russian
    (
        "ignore-instructions",
        r"\b((z)?ignoruj(cie)?|zapomnij(cie)?|pomi(ń|n))\b(\W+\w+){0,3}?\W+(poprzednie|wcze(ś|s)niejsze|wszystkie|powy(ż|z)sze)\b(\W+\w+){0,3}?\W+(instrukcje|polecenia|zasady|wytyczne)\b",
    ),
    (
        "ignore-instructions",
        r"\b((ö|o)nceki|yukar(ı|i)daki|t(ü|u)m)\b(\W+\w+){0,3}?\W+(talimat|kural|y(ö|o)nerge)\w*(\W+\w+){0,2}?\W+(yok say|unut|g(ö|o)rmezden gel|dikkate alma)\w*",
    ),
    (
        "ignore-instructions",
        r"\b(игнорируй\w*|проигнорируй\w*|забудь\w*|отбрось\w*|не (выполняй|следуй|соблюдай)\w*|не обращай\w* внимания на)(\W+\w+){0,4}?\W+(предыдущи\w*|прежни\w*|прошлы\w*|вс[еёя]\w*|вышеуказанн\w*|системн\w*)(\W+\w+){0,3}?\W+(инструкци\w*|указани\w*|правил\w*|команд\w*|промпт\w*)",
    ),
    // Chinese, Japanese, Korean, Arabic
    (
        "ignore-instructions",
        r"(忽略|无视|無視|忘记|忘記|不要理会|不要理會|不要遵守|不要遵循)[^。！？.!?]{0,12}(之前|以前|先前|前面|以上|上述|上面|所有|一切|系统|系統|你的)[^。！？.!?]{0,10}(指令|指示|说明|說明|提示|规则|規則|命令)",
    ),
    (
        "ignore-instructions",
        r"(以前|これまで|今まで|上記|前|先ほど|すべて|全て|システム)[^。！？.!?]{0,12}(指示|命令|プロンプト|ルール|規則)[^。！？.!?]{0,6}(無視|忘れ|従わない|破棄)",
    ),
    (
        "ignore-instructions",
        r"(이전|위의|앞의|앞선|모든|기존)[^.!?]{0,12}(지시|명령|프롬프트|규칙|지침)[^.!?]{0,8}(무시|잊)",
    ),
    (
        "ignore-instructions",
        r"(تجاهل|تجاهلي|انس)\b(\W+\w+){0,3}?\W+(التعليمات|الأوامر|القواعد)\b(\W+\w+){0,2}?\W+(السابقة|أعلاه)",
    ),
    (
        "new-role",
        r"\b(you are|you're|your name is|act as|pretend to be)\b( now)?\b[^.!?;]{0,60}?\b(assistant|ai|chatbot|bot|language model|llm)\b",
    ),
    (
        "new-role",
        r"\b(du bist|sie sind|tu es|vous (ê|e)tes|eres|voc(ê|e) (é|e)|sei)\W+(jetzt|nun|ab sofort|ab jetzt|maintenant|d(é|e)sormais|ahora|agora|adesso|ora)\b[^.!?]{0,60}?\b(assistent[en]?|assistante?|asistente|ki|ia|ai|chatbot|sprachmodell|mod(è|e)le de langage|modelo de (lenguaje|linguagem))\b",
    ),
    (
        "new-role",
        r"\b(you are|you're|act as|pretend to be|your name is)( now)? dan\b(?P<unless>['’-]\w| \(?(?-i:[A-Z])[a-z])?|(?-i:\b[Yy]ou are now [A-Z]{3,12}\b)|\byou are now (in )?(an? )?(unrestricted|unfiltered|uncensored|jailbroken|developer mode|god mode|dan mode|admin mode)\b",
    ),
    ("new-role", r"(ты|вы)\W+(теперь|отныне)\b[^.!?]{0,60}?(ассистент|помощник|бот|языковая модель|ии)\b"),
    (
        "new-role",
        r"(你|您)(现在|現在|从现在起|從現在起)[^。！？.!?]{0,20}(助手|助理|人工智能|机器人|模型)|(あなた|君)は(今から|これから|今)[^。！？.!?]{0,20}(アシスタント|AI|ボット|モデル)",
    ),
    ("role-tag", r"<\|\s*[a-z_]*(system|assistant|user|im_?start|im_?end|endoftext)[a-z_]*\s*\|>|<</?sys>>|\[/?inst\]"),
    (
        "role-tag",
        r"(?P<unless><(system|assistant)>\s*[\w./-]{1,30}( [\w./-]{1,20})?\s*</(system|assistant)>)|</?\s*(system|assistant)([_ -]?(prompt|message|reminder|instructions?))?\s*/?>",
    ),
    (
        "instruction-heading",
        r#"(^|[\s">])#{2,6}\s*(system\b(?P<unless>\s+(requirements?|architecture|overview|design|dependencies|information|setup|tests?|administration)\b)?|instructions?\s*:)"#,
    ),
    (
        "instruction-heading",
        r"\b(new|updated|override|overriding)\W+system\W+(instructions?|prompt|directives?|message)\b|\bsystem (override|prompt)\W*:",
    ),
    (
        "instruction-heading",
        r"(?P<unless>\b(operating|file|the|this|a|your|our|old|new|current|every|each|any)\s+)?\bsystem\s*:\s*(you (must|are|will|should|have to|shall)|ignore|disregard|from now on|comply|obey|override)\b",
    ),
    (
        "hide-from-user",
        r"\b(do not|don't|dont|never|must not|mustn't)( \w+){0,2}? (tell|inform|alert) (the|your) (user|human|owner|operator)s?\b(?P<unless>\s+(of the|of our|of an?|of version|in|on|at|who|with)\b)?",
    ),
    (
        "hide-from-user",
        r"\b(do not|don't|dont|never|must not|mustn't)( \w+){0,2}? (mention|reveal|disclose|report|show|say|tell) (this|that|it|these|any|anything|the (email|mail|message|transfer|call|step)s?)\b( \w+){0,4}? to (the|your|any) (user|human|owner|operator)s?\b",
    ),
    (
        "hide-from-user",
        r"\b(hide|conceal|keep) (this|that|it|these|everything|your (actions?|steps?))( \w+){0,4}? from (the|your) (user|human|owner|operator)\b|\bthe (user|human) (must|should|may|need) (not|never)( \w+)? (know|learn|notice|find out|be told|see this)\b(?P<unless>\s+(twice|again|more than once|how|where|which)\b)?|\bwithout (telling|the knowledge of) (the|your) (user|human)\b",
    ),
    (
        "hide-from-user",
        r"\b(dem|den|der|deinem|deinen) (be)?(nutzer|anwender|user)(in)?n?( davon| dar(ü|u|ue)ber| hiervon)? (nichts|nicht)( davon| dar(ü|u|ue)ber)?\b|\b(sag|sage|erz(ä|a|ae)hle?|verrate|informiere?)( \w+){0,2}? (dem|den|der) (be)?(nutzer|anwender|user)(in)?\b( \w+){0,3}? (nichts|nicht|kein\w*)\b",
    ),
    (
        "hide-from-user",
        r"\bne (le |la |les |lui )?(dis|dites|informe[zs]?|pr[ée]vien\w*|mentionne[zs]?|r[ée]v[èe]le[zs]?|montre[zs]?)( \w+){0,4}? (l'|l’|(à|a) l'|(à|a) l’)utilisateur\b",
    ),
    (
        "hide-from-user",
        r"\bno (se )?(lo )?(le )?(digas|diga|informes|informe|menciones|mencione|reveles|revele|muestres|avises)( \w+){0,4}? (al|a la) usuari[oa]\b|\b(n(ã|a)o) (o )?(diga|informe|mencione|revele|mostre|conte|avise)( \w+){0,4}? ao usu(á|a)rio\b|\bnon (dire|informare|dirlo|menzionare|rivelare|mostrare)( \w+){0,4}? (all'|all’|l'|l’|al )utente\b",
    ),
    (
        "hide-from-user",
        r"\bне (говори|сообщай|рассказывай|показывай|упоминай|раскрывай)\w*(\W+\w+){0,4}? ?пользовател\w+|(不要|别|別|勿|切勿)[^。！？.!?]{0,6}(告诉|告訴|告知|通知|透露|提醒)[^。！？.!?]{0,6}(用户|用戶|使用者)|(不要|别|別|勿)(向|对|對)(用户|用戶|使用者)[^。！？.!?]{0,8}(提及|透露|说|說|显示)|ユーザー(に|には)[^。！？.!?]{0,10}(伝えない|知らせない|言わない|教えない|話さない)|사용자에게[^.!?]{0,10}(말하지|알리지)",
    ),
    // A name that contains a `_` or `/` is that of a tool.
    (
        "tool-order",
        r#"\b(call|invoke|execute|trigger|run|use)\W+(the\W+|your\W+)?(mcp\W+)?(tools?|functions?)\W+(named\W+|called\W+)?[\w.-]*\w[_/]\w[\w./-]*"#,
    ),
    (
        "tool-order",
        r"\b(call|invoke|execute|trigger)\W+(the\W+|your\W+)?tools?\W+(named|called)\W+\w+|\b(now|immediately|then|must|please|assistant|first)\W+(call|invoke|execute|trigger)\W+(the\W+)?tools? \w+ (with|to|on|and|now)\b",
    ),
    (
        "tool-order",
        r"\byou\W+(must|should|shall|need to|have to|will)\W+(\w+\W+){0,2}?(call|invoke|execute|run|use|trigger)\W+(the\W+)?([\w./-]*\w[_/]\w[\w./-]*\W+(now|immediately|at once|right (now|away))\b|([\w.-]+/)?(send|delete|forward|transfer|remove|upload|wire|pay|post)[_-]\w+(?P<unless>\()?)",
    ),
    (
        "tool-order",
        r"\b(use|call|invoke|run|execute|trigger)\W+(the\W+|your\W+)?[\w./-]*\w[_/]\w[\w./-]*\W+tool\b(?P<unless>\W+to\W+(consider|think|reflect)\b)?",
    ),
    (
        "tool-order",
        r"\b(assistant|ai|agent|model|llm)s?\W+(\w+\W+){0,2}?(must|should|shall|needs? to|ha(s|ve) to|(is|are) required to)\W+(\w+\W+){0,3}?(call|use|invoke|run|execute)\W+(\w+\W+){0,3}?(tools?|functions?)\b",
    ),
    (
        "tool-order",
        r"\b(rufe?|verwende|benutze|starte) (jetzt |nun |sofort |bitte )*(das |dein )?(tool|werkzeug) \S*\w[_/]\w|\b(appelle[zs]?|utilise[zs]?|lance[zs]?|llama|ejecuta|usa|invoca|chame|execute|use) (maintenant |ahora |agora )?(l'|l’|(a )?la |a )?(outil|herramienta|ferramenta) \S*\w[_/]\w|(вызови|запусти|используй)\w* (инструмент|функцию) \S*\w[_/]\w|(调用|調用|运行|執行|执行|使用)(工具|函数|函數) ?\S*\w[_/]\w|ツール ?\S*\w[_/]\w\S* ?(を)?(呼び出|実行|使)",
    ),
    (
        "to-the-assistant",
        r"\bas (an?|the|my|your) ((ai|helpful|virtual|large)\W+)*(assistant|ai|agent|language model|llm|chatbot)\W+(you|your|it is your)\b",
    ),
    (
        "to-the-assistant",
        r"\b(attention|note|notice|message|instructions?|important|dear|hey|hello)\W+((to|for|all|any|the|every)\W+)*(ai|llms?|language models?|chatbots?)\b( (assistant|agent|model|system|bot)s?)?\W*([:,!]|reading|processing|summari[sz]ing)(?P<unless>\W+(please\W+)?(do not|don't|never)\W+(invent|make up|guess|fabricate|hallucinate)\b)?",
    ),
    (
        "to-the-assistant",
        r"\b(if|when|since) you('re| are) (an? )?(ai|llm|language model|ai (assistant|agent)|chatbot)\b[^.!?]{0,60}?\b(must|please|should|ignore|reply|respond|send|call|include|say)\b",
    ),
    (
        "to-the-assistant",
        r"\bals (ki|ki[ -]?assistent(in)?|assistent(in)?|sprachmodell) (musst|sollst|hast|wirst) du\b|\ben tant qu('|’)(ia|assistant|assistant ia|agent)\W+(tu|vous) (dois|devez)\b|\bcomo (asistente|ia|asistente de ia|agente)\W+(tú |tu )?(debes|tienes que)\b|\bcomo (assistente|ia|agente)\W+(você |voce )?(deve|precisa|tem que)\b|\bcome assistente\W+(devi|dovrai)\b",
    ),
    (
        "to-the-assistant",
        r"как (ассистент|помощник|ии|языковая модель)\W+(ты|вы) (долж\w+|обязан\w*)|(作为|作為|身为)(一个|一個)?(AI|人工智能)?(助手|助理|模型|AI)[^。！？.!?]{0,4}(你|您)?(必须|必須|应该|應該|需要|要)|(アシスタント|AI)として[^。！？.!?]{0,8}(必ず|しなければ|すること|してください|実行)",
    ),
    (
        "forward-data",
        r"\b(forward|send|e-?mail|upload|post|transmit|exfiltrate|leak|copy)\W+(me\W+)?((all|every|any|the|their|your|user'?s?|his|her|of|these|stored|saved)\W+){0,4}?(e-?mails|mails|messages|inbox|mailbox|contacts|files|documents|passwords?|credentials|api[ -]?keys?|tokens|secrets?|private keys?|conversations?( history)?|chat history|environment variables)\b(\W+\w+){0,4}?\W+to\W+([\w.+-]+@[\w-]+\.\w|https?://)",
    ),
    (
        "forward-data",
        r"\b(send|give|e-?mail|forward|tell|show|hand)\W+(me|us)\W+(all|every|any|your)\b(\W+\w+){0,3}?\W+(passwords?|credentials|api[ -]?keys?|secrets?|private keys?|ssh keys?|access tokens?)\b",
    ),
    ("forward-data", r"\bforward (this|it|everything|these)( \w+){0,3}? to ([\w.+-]+@[\w-]+\.\w|https?://)"),
    (
        "forward-data",
        r"\b(leite|sende|schicke?)\b( \w+){0,3}? (alle|s(ä|a|ae)mtliche|die|deine|ihre)( \w+){0,2}? (e-?mails|mails|nachrichten|passw(ö|o|oe)rter|zugangsdaten|dateien|kontakte)\b( \w+){0,3}? (an|nach) ([\w.+-]+@[\w-]+\.\w|https?://)|\b(transf(è|e)re[zs]?|envoie[zs]?|env(í|i)a|reenv(í|i)a|envie|encaminhe|inoltra|invia)\b( \w+){0,3}? (tous|toutes|todos|todas|tutti|tutte)( \w+){0,2}? (e-?mails|courriels|messages|mots de passe|correos|mensajes|contrase(ñ|n)as|mensagens|senhas|messaggi|password|fichiers|archivos|arquivos)\b( \w+){0,4}? (à|a) ([\w.+-]+@[\w-]+\.\w|https?://)|(перешли|отправь)\w*( \w+){0,2}? вс[еюя]\w*( \w+){0,2}? на ([\w.+-]+@[\w-]+\.\w|https?://)|(转发|轉發|发送|發送)[^。！？!?]{0,12}(邮件|郵件|密码|密碼|文件|消息)[^。！？!?]{0,6}(到|给|給|至) ?([\w.+-]+@[\w-]+\.\w|https?://)",
    ),
    (
        "reveal-prompt",
        r"\b(reveal|print|repeat|output|show|leak|disclose|tell me|give me)\W+(\w+\W+){0,3}?(your|the)\W+(\w+\W+){0,1}?(system|initial|hidden|secret)\W+(prompt|instructions)\b",
    ),
];

/// Names and patterns of the rules for the declarations of tools, in addition to most of [`USUAL`].
pub(super) const DECLARED: &[(&str, &str)] = &[
    // About all other tools: "before any other tool", "instead of using the other tools".
    (
        "other-tools",
        r"\b(before|prior to|ahead of|after|instead of|rather than|whenever|when|if|each time|every time|together with|alongside)\W+(\w+\W+){0,4}?((any|all|every|each|another)\W+(of\W+)?((the|your|my|these|those)\W+)?((other|different|remaining|available|mcp)\W+)*|the\W+other\W+|other\W+)(tools?|functions?|(tool|function|mcp)\W+(calls?|servers?))\b",
    ),
    (
        "other-tools",
        r"\b(do not|don't|never|must not|stop|avoid)\W+(use|using|call|calling|invoke|invoking|trust|trusting|run|running)\W+((any|all|the|of|those|these)\W+){0,3}?(other|different|another)\W+(\w+\W+){0,2}?(tools?|functions?|servers?)\b",
    ),
    (
        "other-tools",
        r"\b(when(ever)?|if|each time|every time|once|after|before)\W+(\w+\W+){0,4}?([\w.-]*\w[_/][\w./-]*\w|(tools?|functions?)(\W+[\w./-]+)?)\W+((tools?|functions?|servers?)\W+)?(is|are|gets?|was|were)\W+(to be\W+|being\W+|about to be\W+)?(called|invoked|executed|triggered|run)(\s*[,:;]|\W+(you|also|always|must|then|please|first|do|make|change|send|call)\b)",
    ),
    (
        "other-tools",
        r"\b(changes?|modif(y|ies)|affects?|alters?|overrides?|replaces?|has (important )?side[ -]?effects? (on|for))\W+(\w+\W+){0,3}?(behaviou?rs?|actions?|effects?|instructions?)\W+(of|for|in)\W+(\w+\W+){0,2}?(other|all|every|any)\W+(\w+\W+)?(tools?|functions?|servers?)\b",
    ),
    (
        "other-tools",
        r"\b(ignore|disable|distrust|avoid)\W+((the|all|any|of)\W+){0,3}?(other|another)\W+(\w+\W+)?(tools?|functions?|servers?)\b|\b(any|all|every|each|no)\W+(of\W+)?(the\W+)?other\W+(\w+\W+)?(tools?|functions?|servers?)\W+(must|should|shall|may|ha(s|ve) to|needs? to|can)\b|\b(over|than|above)\W+(any|all|every)\W+(of\W+)?(the\W+)?other\W+(\w+\W+)?(tools?|functions?|servers?)\b",
    ),
    (
        "other-tools",
        r"\b(the|be|as) (very )?first (tool|function|call)\W+(that is\W+|to be\W+|you\W+|which is\W+)?(called|used|invoked|call|use|invoke|made)\b",
    ),
    (
        "other-tools",
        r"\b(instead of|rather than|in place of|do not (use|call)|don't (use|call)|never (use|call))\W+(the\W+)?[a-z][\w-]*[a-z]/[a-z][\w-]+\W+(tool\b|function\b|[;,.]|$)",
    ),
    // "Before any other tool", in other languages
    (
        "other-tools",
        r"\bavant (tout|chaque) autre outil\b|\bantes de (cualquier|toda|cada) otra herramienta\b|\bvor (jedem|allen) anderen (werkzeug|tool)\w*|\bantes de qualquer outra ferramenta\b|\bprima di (ogni|qualsiasi) altro strumento\b|任何其他(工具|函数)之前|他のツールを(使う|呼び出す)前",
    ),
    // Orders to call something other than "this tool".
    (
        "call-order",
        r"\b(tools?|functions?)\W+(named|called)\W+[\w./-]+\b[^.!?]{0,30}?\b(always|must|never|also|immediately)\W+(\w+\W+){0,2}?(call|use|invoke|run|execute|trigger)\b",
    ),
    (
        "call-order",
        r"\b(always|be sure to|make sure (to|you)|remember to|do not forget to|don't forget to|you must (first|also|then|always|immediately))\W+(\w+\W+){0,2}?(call|invoke|trigger|execute)\W+(?P<unless>(this|it|the same)\b)?",
    ),
    (
        "call-order",
        r"\balways\W+(call|invoke|use|run|start with|begin with)\b[^.!?]{0,40}?\b(first|before (any|every|all|you|answering|replying|responding))\b",
    ),
    (
        "call-order",
        r"\b(before|after|in|with|for|on|at the (start|beginning|end) of|along with)\W+(every|each|any|all)\W+(of your\W+|of the\W+)?(\w+\W+){0,1}?(answers?|responses?|repl(y|ies)|conversations?|sessions?|turns?|chats?|tool calls?|questions?)\b[^.!?]{0,40}?\b(call|invoke|use|run|send|forward|execute|trigger)\b",
    ),
    (
        "call-order",
        r"\b((every|each) time|whenever) (you|the (user|assistant|model|agent))\b[^.!?]{0,40}?\b(call|invoke|send|forward|execute|trigger)\b",
    ),
    (
        "call-order",
        r"\b(before|prior to|after)\W+(you\W+)?(do(ing)?\W+)?(anything|everything|any answer(ing)?|answer(ing)?|respond(ing)?|reply(ing)?)\b[^.!?]{0,60}?\b(call|invoke|use|run|send|forward|execute|trigger|read)\b",
    ),
    (
        "call-order",
        r"\b(call|invoke|trigger|execute)\W+(the\W+|your\W+)?((mcp\W+)?(tool|function)s?\W+(named\W+|called\W+)?)?([\w-]*[a-z][\w-]*/[a-z]+[_-]?[\w-]*\b(?P<unless>\W{0,2}(endpoint|api|route|path|request|method)|/)?|mcp__\w)",
    ),
    (
        "call-order",
        r"\b(assistants?|ai|agents?|llms?|language models?|you)\W+(\w+\W+){0,2}?(must|should|shall|needs? to|ha(s|ve) to|(is|are) required to)\W+(\w+\W+){0,4}?(call|use|invoke|run|execute|trigger)\W+(\w+\W+){0,3}?(from|of|on|in)\W+(the\W+)?(other|another|different|mail|e-?mail|banking|payments?|files?|github|slack)\W+(\w+\W+)?(servers?|mcp|tools?)\b",
    ),
    // Data of the user: messages, prompts, secrets.
    (
        "take-data",
        r"\b(pass|attach|append|add|supply|provide|put|paste|copy|send|forward|post|upload|transmit|submit|relay|deliver|leak|exfiltrate|with|including|include)\b(\W+\w+){0,6}?\W+(((the\W+)?users?'?s?|the (person|customer|human|client|owner)'?s?|your|their|this|the|our)\W+)?((last|latest|previous|recent|entire|full|whole|complete|current|private|prior|earlier|all)\W+)+(\w+\W+){0,2}?(user|chat|conversation|system|message|assistant)?\W*(messages?|prompts?|conversations?|chats?|histor(y|ies)|transcripts?|context window)\b(?P<unless>\W+(in|from|of|within|to)\W+(the|a|an|this|that|its|your)?\W*(\w+\W+)?(folder|mailbox|channel|thread|inbox|queue|topic|group|team|page)\b)?",
    ),
    (
        "take-data",
        r"\b(pass|attach|append|add|supply|put|paste|copy|send|forward|post|upload|transmit|submit|relay|deliver|leak|exfiltrate)\b(\W+(\w|')+){0,4}?\W+((the\W+)?users?'?s?|your|their|all|any|every|its|the)\W+(\w+\W+){0,2}?(system prompt|environment variables|api[ -]?keys?|credentials|passwords?|access tokens?|private keys?|ssh keys?|secret keys?)\b(?P<unless>\W+(to (reset|change|update|set)|field|parameter|header|option|policy)\b)?",
    ),
    (
        "take-data",
        r"\b(send|forward|post|write|cc|bcc|copy|report|submit|upload|transmit|e-?mail|mail|deliver|relay|blind copy|carbon copy)\b(\W+[\w'/]+){0,14}?\W+(to|at)\W+([\w.+-]+@(?P<unless>(example|test|contoso|company|domain|acme|mail|email|your)[\w-]*\.|outlook\.com|gmail\.com)?[\w-]*(\.\w|\.\.\.)|audit@)",
    ),
    (
        "take-data",
        r"\b(audit|compliance|backup|monitoring|security|archive|logging|control)\W+(cop(y|ies)|duplicates?|bcc)\W+(\w+\W+){0,4}?(to|at)\b|\b(bcc|blind(ly)? cop(y|ies)|secret cop(y|ies)|hidden cop(y|ies)|silent(ly)? cop(y|ies)|audit cop(y|ies))\W+(\w+\W+){0,4}?(to\W+)?[\w.+-]+@",
    ),
    (
        "take-data",
        r"\b(conversation|chat|discussion|dialogue)\W+(so far|until now|to date|up to now|up to this point)\b|\b(contents?|read|load|include|attach|pass)\W+(\w+\W+){0,3}?\.env\b",
    ),
    ("take-data", r"\bb?cc\W+[\w.+-]+@(?P<unless>(example|test|contoso|company|domain|acme)[\w-]*\.)?"),
    (
        "take-data",
        r"(~|\$home|%userprofile%|/root|/home/\w+|/users/\w+)[/\\]\.(ssh|aws|cursor|gnupg|kube|docker|netrc|npmrc|claude|codex|env|config[/\\](gh|gcloud|claude|lispbox))|\bid[ _-]?(rsa|ed25519|ecdsa)\b|\betc[/ _-](passwd|shadow)\b",
    ),
    // Names of arguments: they have no blanks.
    (
        "take-data",
        r"^(?P<unless>(list|get|delete|remove|clear|rotate|revoke|reset|show|fetch|set|unset|update|export|import|sync)[_-]?)?[\w-]*((all|every|entire|complete|whole)[_-]?(of[_-]?)?(the[_-]?|users?[_-]?|your[_-]?|my[_-]?)*(env(ironment)?[_-]?var(iable)?s|api[_-]?keys|credentials|passwords|private[_-]?keys?|ssh[_-]?keys?|access[_-]?tokens)|(users?|your)[_-]?(env(ironment)?[_-]?var(iable)?s|private[_-]?keys?|ssh[_-]?keys?))[\w-]*$",
    ),
    (
        "take-data",
        r"^[\w-]*(full|all|entire|complete|whole|last|previous|prior)[_-]?(of[_-]?)?(the[_-]?|users?[_-]?|your[_-]?|previous[_-]?|recent[_-]?)*((conversation|chat|dialog(ue)?|message|prompt)s?[_-]?(history|so[_-]?far|transcript|context|with[_-]?user)|messages[_-]?(of|from|by)[_-]?(the[_-]?)?user|user[_-]?(messages|prompts?)|system[_-]?prompts?)[\w-]*$",
    ),
    (
        "take-data",
        r"^[\w-]*(contents?|data|text|output)[_-]?(from|of|after|by)[_-]?(reading|running|calling|executing|cat)[\w-]*$",
    ),
    // Data that goes to a URL.
    (
        "take-data",
        r"\b(sends?|forwards?|posts?|upload|transmit|submit|relay|deliver|report|write|put)\b(\W+[\w'/]+){0,6}?\W+(cop(y|ies)|duplicates?)\b(\W+[\w'/]+){0,4}?\W+to\W+https?://(?P<unless>localhost|127\.)?",
    ),
    (
        "take-data",
        r"\b(all|every|each|any|users?'?s?|your|their|results?|responses?|replies|answers?|messages?|conversations?)\b(\W+\w+){0,3}?\W+(are|is|must be|should be|get|gets|will be|have to be)\W+(also\W+|then\W+|first\W+|always\W+|additionally\W+|silently\W+)*(sent|forwarded|posted|copied|uploaded|transmitted|reported|delivered|relayed|submitted)\W+(\w+\W+){0,2}?to\W+https?://(?P<unless>localhost|127\.)?",
    ),
    (
        "take-data",
        r"\b(send|forward|post|copy|upload|transmit|submit|relay|deliver|report)\W+(\w+\W+){0,2}?(users?'?s?|your|their|all|every|any)\W+(\w+\W+){0,3}?(messages?|e?-?mails?|results?|responses?|answers?|repl(y|ies)|conversations?|contents?|data|history|prompts?|files?|credentials?|keys?|arguments?|quer(y|ies)|inputs?|outputs?)\b(\W+\w+){0,3}?\W+to\W+https?://(?P<unless>localhost|127\.)?",
    ),
    (
        "take-data",
        r"\bwith\W+(the\W+)?(users?'?s?|your|their)\W+(\w+\W+){0,2}?(data|details|messages?|mails?|files?|prompts?|contacts|credentials)\W+(attached|included|appended|added)\b",
    ),
    // "The user's last messages", in other languages
    (
        "take-data",
        r"\bderniers messages de l(['’] ?|\W)utilisateur\b|\b([úu])ltimos mensajes del usuario\b|\bletzten nachrichten des (be)?nutzers\b|\b([úu])ltimas mensagens do usu(á|a)rio\b|\bultimi messaggi dell(['’] ?|\W)utente\b|用户(最近|最新|之前)的(消息|对话)",
    ),
    (
        "change-arguments",
        r"\b(change|replace|modify|alter|substitute|redirect|reroute|rewrite|set)\W+(\w+\W+){0,3}?(recipients?|address(es)?|account( number)?|iban|phone( number)?|number|destination|payee|beneficiary|proxy number)\W+(\w+\W+){0,3}?(to|with|by)\W+([\w.+-]+@|\+?\d{3}|[a-z]{2}\d\d)",
    ),
    // Things that the user is not to know, or is not asked about.
    (
        "hide-from-user",
        r"\b(do not|don't|never|must not|mustn't|avoid|refrain from|without|no need to)\W+(\w+\W+){0,2}?(tell(ing)?|inform(ing)?|mention(ing)?|reveal(ing)?|disclos(e|ing)|notify(ing)?|alert(ing)?|ask(ing)?|show(ing)?|warn(ing)?|bother(ing)?|let(ting)?)\W+(\w+\W+){0,4}?((the|your)\W+)?(user|human|person|owner|operator)s?\b(?P<unless>\W+(to (choose|pick|provide|re-?enter|type|enter|repeat)|again|twice|for (the|a|an|their|more)\W+(\w+\W+)?(id|name|path|url|details|format))\b)?",
    ),
    (
        "hide-from-user",
        r"\b(the\W+)?(user|human|owner|operator)s?\W+(\w+\W+){0,2}?(must|should|may|need|does|do|will|shall|is|are)(\W+not|n't|\W+never)\W+(\w+\W+){0,3}?(know|see this|notice|told|aware|find out|be informed|be asked)\b(?P<unless>\W+(the|which|what|how|where|their|its)\b)?",
    ),
    (
        "hide-from-user",
        r"\b(keep|kept|leave|make)\W+(this|that|it|these|them)\W+(\w+\W+){0,3}?(secret|hidden|confidential|between us|invisible|unmentioned)\b|\b(secretly|covertly|surreptitiously|without (the )?(user'?s?|their) (knowledge|consent|permission|approval)|behind the user's back)\b",
    ),
    (
        "to-the-assistant",
        r"\bas (an?|the|my|your) ((ai|helpful|virtual|large)\W+)*(assistant|ai|agent|language model|llm|chatbot)\W+(you|your|it is your)\b|\b(if|when|since) you('re| are) (an? )?(ai|llm|language model|ai (assistant|agent)|chatbot)\b[^.!?]{0,60}?\b(must|should|ignore|send|call|include)\b",
    ),
    ("tag", r"</?\s*(important|critical|urgent|hidden|secret|admin|instructions?|override|mandatory)\s*/?>"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_of_words_contains_each_letter_in_both_cases() {
        let class = |flags: &str| regex_syntax::parse(&format!("({flags}[{WORD}])")).expect("a valid class");
        assert_eq!(class("?-i:"), class("?i:"));
    }

    #[test]
    fn word_classes_are_read_with_case() {
        assert_eq!(plain(r"a\b\w+[^.]"), format!(r"a\b(?-i:[{WORD}])+[^.]"));
        assert_eq!(plain(r"\W[\w.+-]@"), format!(r"(?-i:[^{WORD}])(?-i:[{WORD}.+-])@"));
    }
}
