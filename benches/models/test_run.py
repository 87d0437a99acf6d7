import asyncio
import os
import shutil
import tempfile
import unittest
from pathlib import Path

import records
import run
from endpoints import Endpoint
from report import cell, table
from scripted import Fails, Says, Scripted
from settings import Setting

LISPBOX = (
    os.environ.get("LISPBOX") or shutil.which("lispbox") or str(Path(__file__).parents[2] / "target/release/lispbox")
)
needs_lispbox = unittest.skipUnless(os.access(LISPBOX, os.X_OK), f"there is no binary {LISPBOX}; LISPBOX names another")
COUNT = '(->> (range 1 3) (mapcat #(:tickets (desk/list_tickets {:status "open" :page %}))) count)'


def trial(endpoint, api, task="desk/open-count", setting=Setting(is_direct=True), **more):
    plan = run.Plan(Endpoint(endpoint.url, "scripted", "secret", backoff=0.001), api, setting, **more)
    return asyncio.run(run.run(plan, task))


class OverBothApis(unittest.TestCase):
    def over_both(self, *script, **more):
        """The records of trials over both APIs, each with the requests that the endpoint got."""
        for api in ("openai", "anthropic"):
            with self.subTest(api=api), Scripted(*script) as endpoint:
                yield trial(endpoint, api, **more), endpoint.requests

    def test_calls_are_made_and_the_answer_is_judged(self):
        script = (
            Says("", [("list_tickets", {"status": "open"}), ("list_tickets", {"status": "open", "page": 2})]),
            Says("Answer: 79"),
        )
        for record, requests in self.over_both(*script):
            self.assertTrue(record.right, record.reason)
            self.assertEqual((record.outcome, record.rounds, record.calls, record.errors), ("answered", 2, 2, 0))
            self.assertEqual(record.characters, sum(len(exchange.reply) for exchange in record.exchanges))
            self.assertEqual((record.input_tokens, record.output_tokens), (200, 20))
            path, headers, body = requests[1]
            if path == "/v1/chat/completions":
                self.assertEqual(headers["authorization"], "Bearer secret")
                self.assertEqual(
                    [message["role"] for message in body["messages"]], ["system", "user", "assistant", "tool", "tool"]
                )
                self.assertEqual(body["messages"][3]["tool_call_id"], "call-1-0")
                self.assertEqual(body["tools"][0]["function"]["name"], "list_tickets")
            else:
                self.assertEqual((path, headers["x-api-key"]), ("/v1/messages", "secret"))
                self.assertEqual([message["role"] for message in body["messages"]], ["user", "assistant", "user"])
                self.assertEqual(
                    [block["tool_use_id"] for block in body["messages"][2]["content"]], ["call-1-0", "call-1-1"]
                )
                self.assertIn("input_schema", body["tools"][0])

    def test_a_wrong_answer_has_its_reason(self):
        for record, _ in self.over_both(Says("Answer: 80")):
            self.assertFalse(record.right)
            self.assertEqual(record.reason, "expected 79, got 80")

    def test_effects_are_judged(self):
        call = ("update_ticket", {"key": "SUP-1001", "status": "open"})
        for record, _ in self.over_both(Says("", [call]), Says("Answer: 79")):
            self.assertFalse(record.right)
            self.assertEqual(
                record.effects, [{"kind": "ticket", "key": "SUP-1001", "field": "status", "value": "open"}]
            )

    def test_error_replies_are_counted(self):
        calls = [("get_ticket", {"key": "SUP-0"}), ("get_ticket", {}), ("no_such_tool", {}), ("get_ticket", {"key": 7})]
        for record, _ in self.over_both(Says("", calls), Says("Answer: 79")):
            self.assertEqual((record.calls, record.errors, record.malformed, record.right), (4, 4, 0, True))
            self.assertEqual(record.exchanges[0].reply, "ticket SUP-0 not found")

    def test_a_model_that_never_stops_is_stopped(self):
        for record, _ in self.over_both(Says("", [("list_agents", {})]), max_rounds=3):
            self.assertEqual((record.outcome, record.rounds, record.calls), ("too_many_rounds", 3, 3))
            self.assertEqual(record.reason, "no answer after 3 rounds")

    def test_refusals_and_replies_that_are_cut_off_are_outcomes(self):
        for record, _ in self.over_both(Says("I cannot do that.", stop="refused")):
            self.assertEqual((record.outcome, record.right), ("refused", False))
        for record, _ in self.over_both(Says("Answer: 79 and then", stop="cut_off")):
            self.assertEqual(record.outcome, "cut_off")

    def test_failures_that_may_pass_are_tried_again(self):
        script = (
            Fails(429, headers={"retry-after": "0"}),
            Fails(529),
            Fails(500, "oops"),
            Fails(200, "not JSON"),
            Says("Answer: 79"),
        )
        for record, requests in self.over_both(*script):
            self.assertEqual((record.right, record.retries, len(requests)), (True, 4, 5))

    def test_other_failures_end_the_trial(self):
        for record, requests in self.over_both(Fails(401, '{"error": "no key like secret"}')):
            self.assertEqual(
                (record.outcome, record.reason), ("endpoint_error", 'HTTP 401: {"error": "no key like [key]"}')
            )
            self.assertEqual(len(requests), 1)
        for record, requests in self.over_both(Fails(503, "busy")):
            self.assertEqual(record.reason, "no reply after 5 attempts; the last one: HTTP 503: busy")
            self.assertEqual(len(requests), 5)
        for record, _ in self.over_both(Fails(302, headers={"location": "http://127.0.0.1:9/"})):
            self.assertEqual(record.outcome, "endpoint_error")

    def test_a_reply_of_another_form_ends_the_trial(self):
        for body in ("{}", "[]", "7", '{"choices": []}', '{"content": [{"type": "tool_use"}]}'):
            for record, _ in self.over_both(Fails(200, body)):
                self.assertEqual(record.outcome, "endpoint_error")
                self.assertIn("expected a reply of the API", record.reason)

    def test_a_trial_ends_at_its_time(self):
        for record, _ in self.over_both(Fails(503, headers={"retry-after": "60"}), seconds=1.0):
            self.assertEqual((record.outcome, record.reason), ("out_of_time", "no answer within 1 s"))


class Arguments(unittest.TestCase):
    def test_arguments_that_are_no_object_are_not_sent(self):
        for given in ("{oops", "[1]", '"text"', '{"key": "\\ud800"}', '{"key": NaN}'):
            with self.subTest(given), Scripted(Says("", [("get_ticket", given)]), Says("Answer: 79")) as endpoint:
                record = trial(endpoint, "openai")
                self.assertEqual((record.right, record.calls, record.errors, record.malformed), (True, 1, 1, 1))
                self.assertIn("must be a JSON object in UTF-8", endpoint.requests[1][2]["messages"][-1]["content"])

    def test_records_can_be_written_and_read_whatever_they_have(self):
        with Scripted(Says("", [("get_ticket", '{"key": "\\ud800 é"}')]), Says("Answer: \ud800")) as endpoint:
            record = trial(endpoint, "openai")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "records.jsonl"
            records.append(file, record)
            records.append(file, record)
            self.assertEqual(records.read(file), [record, record])
            self.assertIn("| desk | direct | 2 | 0 | 1.00 |", table(records.read(file)))
            file.write_text("{}\n")
            with self.assertRaisesRegex(ValueError, "records.jsonl:1 is not a record of a trial"):
                records.read(file)

    def test_cells_of_a_report_can_be_printed(self):
        self.assertEqual(cell("a|b\n\ud800 é"), "a\\|b \\ud800 é")

    def test_a_server_that_does_not_start_is_an_outcome(self):
        with Scripted(Says("Answer: 79")) as endpoint:
            record = trial(endpoint, "openai", setting=Setting(lispbox="/no/such/lispbox"))
        self.assertEqual((record.outcome, record.right), ("server_error", False))
        self.assertIn("FileNotFoundError", record.reason)


@needs_lispbox
class ThroughLispbox(unittest.TestCase):
    def test_the_model_has_the_tools_of_lispbox_alone(self):
        script = (
            Says("", [("lisp_eval", {"program": COUNT})]),
            Says("", [("lisp_eval", {"program": "(nope)"})]),
            Says("Answer: 79"),
        )
        with Scripted(*script) as endpoint:
            record = trial(endpoint, "anthropic", setting=Setting(lispbox=LISPBOX))
            tools = endpoint.requests[0][2]["tools"]
        self.assertEqual([tool["name"] for tool in tools], ["lisp_eval", "lisp_env"])
        self.assertEqual((record.right, record.mode, record.calls, record.errors), (True, "lispbox", 2, 1))
        self.assertTrue(record.exchanges[0].reply.startswith("79\n"), record.exchanges[0].reply)

    def test_effects_need_no_approval_and_outlast_the_server(self):
        program = """
            (desk/update_ticket {:key "SUP-1001" :add_tags ["x"]})
            (desk/send_notice {:customer_id 2001 :message "Hi"})"""
        with Scripted(Says("", [("lisp_eval", {"program": program})]), Says("Answer: 79")) as endpoint:
            record = trial(endpoint, "openai", setting=Setting(lispbox=LISPBOX))
        self.assertEqual([effect["kind"] for effect in record.effects], ["ticket", "notice"])


if __name__ == "__main__":
    unittest.main()
