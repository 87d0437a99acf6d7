import json


def main(data):
    groups = {}
    for mail in data["mails"]:
        if mail["unread"] and mail["size"] > 10000:
            groups.setdefault(mail["sender"], []).append(mail)
    rows = []
    for sender, mails in groups.items():
        total = sum([mail["size"] for mail in mails])
        rows.append({"sender": sender, "count": len(mails), "sum": total, "mean": total / len(mails)})
    rows.sort(key=lambda row: (-row["count"], row["sender"]))
    return json.dumps({"top": rows[:10]})


main(data)
