def main():
    total = 0
    for i in range(1000000):
        total += host_add({"a": i, "b": 2})
    return total


main()
