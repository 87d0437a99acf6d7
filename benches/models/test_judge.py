import unittest

from judge import Task, anything, items, number, pairs


def is_right(check, message, effects=(), wanted=()):
    return Task("t", "", check, tuple(wanted)).judge(message, list(effects)).is_right


class Answers(unittest.TestCase):
    def test_the_answer_follows_the_last_mark(self):
        for message in (
            "Answer: 7",
            "I counted 3 and 4.\n\nAnswer: 7",
            "**Answer:** 7",
            "**Answer: 7**",
            "answer: 7.",
            "Answer: 5. No, wait.\nAnswer: 7",
            "The final answer: 7",
            "7",
            "Answer: 7\n\nThat is 3 + 4.",
        ):
            self.assertTrue(is_right(number(7), message), message)
        for message in ("", "3 and 4", "Answer:", "Answer: 8", "Answer: 7 or 8", "Answer: seven"):
            self.assertFalse(is_right(number(7), message), message)

    def test_numbers_may_have_units_and_separators(self):
        for message in (
            "Answer: 1,234.50",
            "Answer: 1234.5 EUR",
            "Answer: €1,234.50",
            "Answer: $1234.50",
            "Answer: 1234.499",
        ):
            self.assertTrue(is_right(number(1234.5, 0.01), message), message)
        self.assertTrue(is_right(number(425.47), "Answer: 425.47kg"))
        self.assertTrue(is_right(number(-3), "Answer: −3"))
        self.assertFalse(is_right(number(1234.5), "Answer: 1.234,50"))

    def test_lists_are_sets_of_names(self):
        check = items(["SUP-1", "SUP-22"])
        for message in (
            "Answer: SUP-1, SUP-22",
            "Answer: sup-22; SUP-1",
            "Answer:\n- SUP-1\n- `SUP-22`",
            "Answer: SUP-1 and SUP-22.",
            "Answer: [SUP-1, SUP-22]",
            "Answer: SUP-1 (open), SUP-22 (closed)",
            "Answer:\n1. SUP-22\n2. SUP-1",
        ):
            self.assertTrue(is_right(check, message), message)
        for message in ("Answer: SUP-1", "Answer: SUP-1, SUP-2", "Answer: SUP-1, SUP-22, SUP-3", "Answer: none"):
            self.assertFalse(is_right(check, message), message)

    def test_an_empty_list_is_none(self):
        self.assertTrue(is_right(items([]), "Answer: none"))
        self.assertFalse(is_right(items([]), "Answer: SUP-1"))

    def test_an_order_counts_where_it_is_asked_for(self):
        self.assertTrue(is_right(items(["b", "a"], is_ordered=True), "Answer: B, a"))
        self.assertFalse(is_right(items(["b", "a"], is_ordered=True), "Answer: a, b"))

    def test_pairs_are_names_with_numbers(self):
        check = pairs({"P1": 15, "Petrov & Sons": 1200})
        for message in (
            "Answer: P1: 15, Petrov & Sons: 1,200",
            "Answer: petrov & sons = 1200; P1 = 15",
            "Answer:\n- P1: 15\n- **Petrov & Sons**: 1200 units",
            "Answer: P1: 15, P2: 0, Petrov & Sons: 1200",
        ):
            self.assertTrue(is_right(check, message), message)
        for message in ("Answer: P1: 15", "Answer: P1: 1200, Petrov & Sons: 15", "Answer: 15, 1200", "Answer: P1 P2"):
            self.assertFalse(is_right(check, message), message)


class Effects(unittest.TestCase):
    closed = {"kind": "ticket", "key": "SUP-1", "field": "status", "value": "closed"}
    notice = {"kind": "notice", "customer": 7, "text": "Your contract ends soon."}

    def judged(self, effects, wanted):
        return is_right(anything, "Answer: done", effects, wanted)

    def test_effects_are_exactly_the_wanted_ones(self):
        self.assertTrue(self.judged([self.closed], [self.closed]))
        self.assertFalse(self.judged([], [self.closed]))
        self.assertFalse(self.judged([self.closed, self.notice], [self.closed]))
        self.assertFalse(self.judged([self.closed, {**self.closed, "key": "SUP-2"}], [self.closed]))

    def test_a_task_without_effects_expects_none(self):
        self.assertFalse(self.judged([self.closed], []))

    def test_an_effect_that_was_made_twice_is_wrong(self):
        wanted = [{"kind": "notice", "customer": 7, "says": ["contract"]}]
        self.assertTrue(self.judged([self.notice], wanted))
        self.assertFalse(self.judged([self.notice, self.notice], wanted))

    def test_the_last_value_of_a_field_counts(self):
        self.assertTrue(self.judged([{**self.closed, "value": "open"}, self.closed], [self.closed]))
        self.assertFalse(self.judged([self.closed, {**self.closed, "value": "open"}], [self.closed]))

    def test_texts_must_have_the_words(self):
        self.assertFalse(
            self.judged([{**self.notice, "text": "Hello"}], [{"kind": "notice", "customer": 7, "says": ["contract"]}])
        )


if __name__ == "__main__":
    unittest.main()
