"""Runs the grammars for constrained decoding in the tools that use them.

Arguments: the Lark file and the GBNF file. Each line of standard input is a JSON object with the fields `program` and
`lark`; the latter selects whether the slow parser `lark` is tried as well. For each line, one line of output reports
which tools derive the program. After that, random programs that a decoder accepts are written for each grammar:
`{"tool": …, "decoded": …}`.
"""

import json
import random
import sys

import lark
import llguidance
from llguidance.gbnf_to_lark import any_to_lark

WALKS = 60
STEPS = 160

lark_text = open(sys.argv[1], encoding="utf-8").read()
gbnf_text = open(sys.argv[2], encoding="utf-8").read()
cases = [json.loads(line) for line in sys.stdin]

tokenizer = llguidance.LLTokenizer("byte")
matchers = {}
for name, text in (("lark", lark_text), ("gbnf", any_to_lark(gbnf_text))):
    problem = llguidance.LLMatcher.validate_grammar(llguidance.grammar_from("lark", text), tokenizer)
    if problem:
        sys.exit(f"llguidance refuses the {name} form: {problem}")
    limits = llguidance.LLParserLimits(max_grammar_size=10**7, max_items_in_row=20000, initial_lexer_fuel=10**8,
                                       step_lexer_fuel=10**7, step_max_items=10**6, max_lexer_states=10**6)
    matchers["llguidance " + name] = llguidance.LLMatcher(tokenizer, llguidance.grammar_from("lark", text), limits=limits)

# Earley, the default: its lexer tries every terminal that can follow, as a decoder does.
parser = lark.Lark(lark_text, parser="earley")


def parses(text):
    try:
        parser.parse(text)
        return True
    except lark.exceptions.LarkError:
        return False


def matches(matcher, text):
    matcher.reset()
    tokens = tokenizer.tokenize_bytes(text.encode("utf-8"))
    taken = matcher.try_consume_tokens(tokens)
    return taken == len(tokens) and matcher.is_accepting()


def report(**fields):
    print(json.dumps(fields))


for case in cases:
    answers = {name: matches(matcher, case["program"]) for name, matcher in matchers.items()}
    if case["lark"]:
        answers["lark"] = parses(case["program"])
    report(program=case["program"], answers=answers)

chance = random.Random(20240229)
for name, matcher in matchers.items():
    finished = 0
    for walk in range(WALKS):
        matcher.reset()
        written = b""
        for step in range(STEPS * 4):
            if matcher.is_accepting() and step > chance.randrange(STEPS):
                finished += 1
                report(tool=name, decoded=written.decode("utf-8", "replace"))
                break
            mask = matcher.compute_bitmask()
            allowed = [byte for byte in range(256) if mask[byte // 8] >> (byte % 8) & 1]
            # Prefers characters that are frequent in programs; towards the end, closing delimiters.
            wanted = b")]}\"" if step > STEPS else b"([{ abct10-:'\"\\.#%^@/"
            likely = [byte for byte in allowed if byte in wanted]
            if likely and chance.random() < 0.9:
                allowed = likely
            byte = chance.choice(allowed)
            if not matcher.consume_token(byte):
                sys.exit(f"llguidance refuses {byte} behind {written!r}: {matcher.get_error()}")
            written += bytes([byte])
    if finished < WALKS // 2:
        sys.exit(f"{name}: only {finished} of {WALKS} walks came to an end")
