def main():
    total = 0
    for i in range(5000000):
        total += (i * i) % 7
    return total


main()
