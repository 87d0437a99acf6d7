import json


def main(text):
    counts = {}
    for line in text.splitlines():
        for word in line.split():
            counts[word] = counts.get(word, 0) + 1
    common = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return json.dumps({"top": common[:20]})


main(text)
