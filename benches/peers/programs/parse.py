import json

data = json.loads(text)
