import hashlib
import importlib
import json
import tempfile
import unittest
from pathlib import Path

import sets
from serving import called


def result(dataset, state, name, **arguments):
    """The value of a tool's result: JSON, or its text."""
    tools = {tool.name: tool for tool in dataset.TOOLS}
    reply = called(tools[name], state, arguments)
    text = reply["content"][0]["text"]
    if reply.get("isError"):
        raise AssertionError(text)
    try:
        return json.loads(text)
    except ValueError:
        return text


# The tool that has an effect of a kind, with its arguments.
ACTIONS = {
    "ticket": lambda e: (
        "update_ticket",
        {
            "key": e["key"],
            **{
                "status": {"status": e["value"]},
                "priority": {"priority": e["value"]},
                "assignee": {"assignee_id": e["value"]},
                "tag": {"add_tags": [e["value"]]},
            }[e["field"]],
        },
    ),
    "notice": lambda e: ("send_notice", {"customer_id": e["customer"], "message": " ".join(e["says"])}),
    "created": lambda e: (
        "create_ticket",
        {
            "customer_id": e["customer"],
            "priority": e["priority"],
            "subject": e["subject"],
            "assignee_id": e["assignee"],
        },
    ),
    "reminder": lambda e: ("send_reminder", {"invoice": e["invoice"], "message": " ".join(e["says"])}),
    "purchase": lambda e: ("create_purchase_order", {name: e[name] for name in ("sku", "quantity", "warehouse")}),
    "shipment": lambda e: (
        "update_shipment",
        {"id": e["key"], {"is_held": "hold", "carrier": "carrier"}[e["field"]]: e["value"]},
    ),
}


class DataSets(unittest.TestCase):
    def test_data_is_the_same_everywhere(self):
        for name, digest in {"desk": "1ff9c28f94d2490f", "depot": "4b6e2cca523ce254"}.items():
            data = repr(importlib.import_module(f"{name}.data").generate())
            self.assertEqual(hashlib.sha256(data.encode()).hexdigest()[:16], digest, name)

    def test_each_set_has_thirty_tasks_and_ten_tools(self):
        for name in sets.DATASETS:
            self.assertEqual(len(sets.chosen([name])), 30)
            self.assertEqual(len(importlib.import_module(f"{name}.tools").TOOLS), 10)

    def test_expected_answers_and_effects_are_right_and_nothing_is_wrong(self):
        for name in sets.chosen([]):
            task = sets.tasks()[name]
            with self.subTest(name):
                tools = importlib.import_module(f"{name.split('/')[0]}.tools")
                state = tools.fresh()
                for effect in task.effects:
                    action, arguments = ACTIONS[effect["kind"]](effect)
                    result(tools, state, action, **arguments)
                verdict = task.judge(f"Answer: {task.check.example}", state.effects)
                self.assertTrue(verdict.is_right, verdict.reason)
                self.assertFalse(task.judge("", []).is_right)

    def test_tasks_have_an_answer_to_find(self):
        for name in sets.chosen([]):
            task = sets.tasks()[name]
            self.assertTrue(task.effects or task.check.example not in ("none", "0", "done"), name)


class Paging(unittest.TestCase):
    """Each scheme of paging gives every record once."""

    def test_desk(self):
        tools = importlib.import_module("desk.tools")
        state = tools.fresh()
        pages = [result(tools, state, "list_tickets", page=page) for page in range(1, 9)]
        self.assertEqual(pages[0]["totalPages"], 8)
        keys = [ticket["key"] for page in pages for ticket in page["tickets"]]
        self.assertEqual(len(set(keys)), len(state.desk.tickets))
        rows = [
            row
            for offset in range(0, 110, 40)
            for row in result(tools, state, "list_customers", limit=100, offset=offset)["rows"]
        ]
        self.assertEqual([row[0] for row in rows], [customer.id for customer in state.desk.customers])
        for ticket in state.desk.tickets:
            found, cursor = [], {}
            while cursor is not None:
                page = result(tools, state, "list_comments", ticket_key=ticket.key, **cursor)
                found += page["items"]
                cursor = page["next_cursor"] and {"cursor": page["next_cursor"]}
            self.assertEqual(len(found), len(ticket.comments))
        found, more = [], True
        while more:
            page = result(tools, state, "search_tickets", query="ticket customer", limit=25, offset=len(found))
            found, more = found + page["results"], page["has_more"]
        self.assertEqual(len(found), len({ticket["key"] for ticket in found}))

    def test_depot(self):
        tools = importlib.import_module("depot.tools")
        state = tools.fresh()

        def follow(name, items, key, argument, **more):
            found, token = [], None
            while True:
                page = result(tools, state, name, **more, **({argument: token} if token else {}))
                found += page[items]
                token = page[key]
                if not token:
                    return found

        orders = follow("list_orders", "orders", "nextCursor", "cursor")
        self.assertEqual([order["orderNo"] for order in orders], [order.number for order in state.depot.orders])
        bills = follow("list_invoices", "invoices", "nextPageToken", "page_token", page_size=50)
        self.assertEqual([bill["number"] for bill in bills], [bill.number for bill in state.depot.invoices])
        products = [product for page in range(1, 5) for product in result(tools, state, "find_products", page=page)]
        self.assertEqual([product["sku"] for product in products], [product.sku for product in state.depot.products])
        total = result(tools, state, "list_shipments")["meta"]["total"]
        sent = [
            one
            for offset in range(0, total, 50)
            for one in result(tools, state, "list_shipments", limit=50, offset=offset)["data"]
        ]
        self.assertEqual([one["id"] for one in sent], [shipment.id for shipment in state.depot.shipments])


class Servers(unittest.TestCase):
    def test_a_server_that_is_restarted_has_its_effects(self):
        tools = importlib.import_module("desk.tools")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "effects"
            first = tools.fresh()
            first.restore(file)
            result(
                tools,
                first,
                "update_ticket",
                key="SUP-1001",
                priority="P1" if first.ticket("SUP-1001").priority != "P1" else "P2",
            )
            made = result(tools, first, "create_ticket", customer_id=2001, subject="New")["created"]
            again = tools.fresh()
            again.restore(file)
            self.assertEqual(again.ticket("SUP-1001"), first.ticket("SUP-1001"))
            self.assertEqual(again.ticket(made).subject, "New")
            self.assertEqual(again.effects, first.effects)

    def test_wrong_arguments_are_explained(self):
        tools = importlib.import_module("depot.tools")
        by_name = {tool.name: tool for tool in tools.TOOLS}
        for name, arguments, message in [
            ("get_order", {}, "missing required argument: order_no"),
            ("get_order", {"order_no": "500101"}, 'argument order_no must be of type integer, got "500101"'),
            ("get_order", {"order_no": 1}, "order 1 not found"),
            ("stock_levels", {"warehouse": "XYZ"}, 'argument warehouse must be one of RTM, CHI, SIN, LBA, got "XYZ"'),
            ("list_orders", {"cursor": "nope"}, "cursor is not one that a result had: nope"),
            ("list_orders", {"date_from": "1.10.2026"}, "date_from must be a day such as 2026-10-31, got 1.10.2026"),
            (
                "exchange_rates",
                {"month": "2025-01"},
                "no rates for 2025-01; there are rates for 2026-08, 2026-09, 2026-10, 2026-11",
            ),
        ]:
            reply = called(by_name[name], tools.fresh(), arguments)
            self.assertEqual((reply["isError"], reply["content"][0]["text"]), (True, message))


if __name__ == "__main__":
    unittest.main()
