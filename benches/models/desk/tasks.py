"""The tasks of the support desk. The expected answers are computed from the records, not through the tools."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import date, timedelta
from statistics import fmean, median

from desk.data import FIRST_RESPONSE, NOW, PRIORITIES, TODAY, Customer, Desk, Ticket, generate
from judge import Task, anything, items, number, pairs
from ranking import best, top


def keys(tickets: Iterable[Ticket]) -> list[str]:
    return [ticket.key for ticket in tickets]


def mentions(ticket: Ticket, word: str) -> bool:
    texts = [ticket.subject, ticket.body, *(comment.body for comment in ticket.comments)]
    return any(word in text.lower() for text in texts)


def all_texts(ticket: Ticket) -> str:
    return "\n".join([ticket.subject, ticket.body, *(comment.body for comment in ticket.comments)])


def change(ticket: Ticket, field: str, value: object) -> dict[str, object]:
    return {"kind": "ticket", "key": ticket.key, "field": field, "value": value}


def tasks() -> list[Task]:
    desk = generate()
    return [*counts_and_lists(desk), *joins(desk), *texts(desk), *changes(desk)]


def counts_and_lists(desk: Desk) -> list[Task]:
    tickets = desk.tickets
    by_key = {ticket.key: ticket for ticket in tickets}
    names = {agent.id: agent.name for agent in desk.agents}
    open_ones = [ticket for ticket in tickets if ticket.status == "open"]
    october = [ticket for ticket in tickets if (ticket.created.year, ticket.created.month) == (2026, 10)]
    days = Counter(ticket.created.date().isoformat() for ticket in october)
    november = Counter(tag for ticket in tickets if ticket.created.date() >= date(2026, 11, 1) for tag in ticket.tags)
    waiting = [ticket for ticket in tickets if ticket.priority == "P2" and ticket.first_response is not None]
    old = [ticket for ticket in open_ones if ticket.assignee is None and ticket.created < NOW - timedelta(days=30)]
    return [
        Task("subject", "What is the subject line of ticket SUP-1042?", items([by_key["SUP-1042"].subject])),
        Task("who-has-it", "Who is working on SUP-1108? I need the name.", items([names[by_key["SUP-1108"].assignee]])),
        Task("open-count", "How many tickets are open right now?", number(len(open_ones))),
        Task(
            "open-by-priority",
            "How many open tickets do we have per priority? Like P1: 3, P2: 4 and so on.",
            pairs({priority: sum(ticket.priority == priority for ticket in open_ones) for priority in PRIORITIES}),
        ),
        Task("created-in-october", "How many tickets came in during October 2026 (UTC)?", number(len(october))),
        Task(
            "busiest-day",
            "Which day in October 2026 had the most new tickets (UTC)? As YYYY-MM-DD.",
            items([best(days)]),
        ),
        Task(
            "median-first-response",
            "Over all P2 tickets that have got a first response: what's the median time to that response, in minutes?",
            number(median(ticket.first_response for ticket in waiting), 0.5),
        ),
        Task(
            "tags-of-november",
            "How often were the tags vip, docs and regression used on tickets created this November? "
            "Like vip: 7, docs: 5, regression: 2.",
            pairs({tag: november[tag] for tag in ("vip", "docs", "regression")}),
        ),
        Task(
            "old-unassigned",
            "Give me the keys of all open tickets that nobody is assigned to and that are more than 30 days old.",
            items(keys(old)),
        ),
        Task(
            "internal-comments",
            "How many of the comments on SUP-1207 are internal?",
            number(sum(comment.is_internal for comment in by_key["SUP-1207"].comments)),
        ),
    ]


def joins(desk: Desk) -> list[Task]:
    tickets = desk.tickets
    customers = {customer.id: customer for customer in desk.customers}
    agents = {agent.id: agent for agent in desk.agents}

    def of(ticket: Ticket) -> Customer:
        return customers[ticket.customer]

    open_ones = [ticket for ticket in tickets if ticket.status == "open"]
    per_customer = Counter(of(ticket).name for ticket in tickets)
    silver = [ticket.satisfaction for ticket in tickets if of(ticket).tier == "silver" and ticket.satisfaction]
    left = {
        agents[ticket.assignee].name
        for ticket in tickets
        if ticket.assignee and ticket.status in ("open", "pending") and not agents[ticket.assignee].is_active
    }
    teams = Counter(agents[ticket.assignee].team for ticket in open_ones if ticket.assignee)
    late = [
        ticket
        for ticket in tickets
        if ticket.status == "solved"
        and ticket.first_response is not None
        and ticket.first_response > 60 * FIRST_RESPONSE[of(ticket).tier][PRIORITIES.index(ticket.priority)]
    ]
    ending = {
        of(ticket).name
        for ticket in open_ones
        if ticket.priority in ("P1", "P2") and TODAY <= of(ticket).contract_end <= TODAY + timedelta(days=60)
    }
    urgent = [
        ticket
        for ticket in tickets
        if ticket.priority == "P1" and ticket.solved and (ticket.solved.year, ticket.solved.month) == (2026, 10)
    ]
    ratings: dict[str, list[int]] = defaultdict(list)
    for ticket in tickets:
        if ticket.assignee and ticket.satisfaction:
            ratings[agents[ticket.assignee].name].append(ticket.satisfaction)
    averages = {name: fmean(of_agent) for name, of_agent in ratings.items() if len(of_agent) >= 5}
    hours = fmean((ticket.solved - ticket.created).total_seconds() / 3600 for ticket in urgent)
    return [
        Task(
            "top-customers",
            "Which three customers have opened the most tickets overall? Names, most tickets first.",
            items([name for name, _ in top(per_customer, 3)], is_ordered=True),
        ),
        Task(
            "gold-urgent",
            "Keys of the open P1 tickets of our gold customers, please.",
            items(keys(ticket for ticket in open_ones if ticket.priority == "P1" and of(ticket).tier == "gold")),
        ),
        Task(
            "silver-satisfaction",
            "What is the average satisfaction score on tickets of silver customers? Two decimals.",
            number(round(fmean(silver), 2), 0.005),
        ),
        Task(
            "left-behind",
            "Some agents are not active any more. Which of them still have open or pending tickets? Names.",
            items(sorted(left)),
        ),
        Task("busiest-team", "Which team has the most open tickets assigned to its people?", items([best(teams)])),
        Task(
            "missed-first-response",
            "For how many tickets in status solved did our first response come later than the SLA allows?",
            number(len(late)),
        ),
        Task(
            "contracts-ending",
            "Which customers have a contract that ends within the next 60 days (it has not ended "
            "yet) and at least one open P1 or P2 ticket? Names.",
            items(sorted(ending)),
        ),
        Task(
            "urgent-solution-time",
            "On average, how many hours from creation to solution did the P1 tickets take that "
            "were solved in October 2026? One decimal.",
            number(round(hours, 1), 0.06),
        ),
        Task(
            "german-gold-seats",
            "How many seats do our gold customers in Germany have altogether?",
            number(
                sum(
                    customer.seats
                    for customer in desk.customers
                    if customer.tier == "gold" and customer.country == "Germany"
                )
            ),
        ),
        Task(
            "quiet-customers",
            "Which bronze customers have never opened a ticket? Names.",
            items(
                sorted(
                    customer.name
                    for customer in desk.customers
                    if customer.tier == "bronze" and customer.name not in per_customer
                )
            ),
        ),
        Task(
            "best-agent",
            "Which agent has the best average satisfaction, counting only agents with at least five ratings?",
            items([best(averages)]),
        ),
    ]


def texts(desk: Desk) -> list[Task]:
    by_key = {ticket.key: ticket for ticket in desk.tickets}
    open_ones = [ticket for ticket in desk.tickets if ticket.status == "open"]
    public = [comment for comment in by_key["SUP-1261"].comments if not comment.is_internal]
    urgent = [ticket for ticket in open_ones if ticket.priority == "P1"]
    orders = {order for ticket in urgent for order in re.findall(r"ORD-\d+", all_texts(ticket))}
    return [
        Task(
            "open-refunds",
            "Which open tickets mention a refund anywhere, be it in the subject, the text or a comment "
            "(tags don't count)? Keys.",
            items(keys(ticket for ticket in open_ones if mentions(ticket, "refund"))),
        ),
        Task(
            "last-public-comment",
            "Who wrote the last comment on SUP-1261 that isn't internal?",
            items([public[-1].author]),
        ),
        Task(
            "orders-in-urgent",
            "Collect the order numbers (like ORD-12345) that appear in the subjects, texts or "
            "comments of the open P1 tickets. No duplicates.",
            items(sorted(orders)),
        ),
    ]


def changes(desk: Desk) -> list[Task]:
    tickets = desk.tickets
    customers = {customer.id: customer for customer in desk.customers}
    ids = {agent.name: agent.id for agent in desk.agents}
    open_ones = [ticket for ticket in tickets if ticket.status == "open"]
    stale = [ticket for ticket in tickets if ticket.status == "pending" and ticket.updated < NOW - timedelta(days=30)]
    raised = [
        ticket
        for ticket in open_ones
        if ticket.priority == "P2"
        and customers[ticket.customer].tier == "gold"
        and customers[ticket.customer].seats > 200
    ]
    ending = [
        customer
        for customer in desk.customers
        if customer.tier == "gold" and TODAY <= customer.contract_end <= date(2027, 1, 31)
    ]
    ratings: dict[int, list[int]] = defaultdict(list)
    for ticket in tickets:
        if ticket.satisfaction:
            ratings[ticket.customer].append(ticket.satisfaction)
    unhappy = {id for id, of in ratings.items() if len(of) >= 3 and fmean(of) < 3}
    risky = [ticket for ticket in open_ones if ticket.customer in unhappy]
    kenji = [ticket for ticket in open_ones if ticket.assignee == ids["Kenji Mori"]]
    renewal = next(customer for customer in desk.customers if customer.name.startswith("Iron Forge "))
    return [
        Task(
            "close-stale",
            "Close all pending tickets that have not been updated in the last 30 days.",
            anything,
            tuple(change(ticket, "status", "closed") for ticket in stale),
        ),
        Task(
            "reassign",
            "Kenji Mori has left. Give his open tickets (only the open ones) to Wei Chen, and tell me how "
            "many there were.",
            number(len(kenji)),
            tuple(change(ticket, "assignee", ids["Wei Chen"]) for ticket in kenji),
        ),
        Task(
            "raise-priority",
            "Raise the open P2 tickets of gold customers with more than 200 seats to P1.",
            anything,
            tuple(change(ticket, "priority", "P1") for ticket in raised),
        ),
        Task(
            "notices",
            "Send a notice to each gold customer whose contract ends between today and the end of January "
            "2027, both included: their contract is about to end and we would like to talk about the renewal.",
            anything,
            tuple({"kind": "notice", "customer": customer.id, "says": ["contract"]} for customer in ending),
        ),
        Task(
            "new-ticket",
            'Open a P2 ticket for the customer Iron Forge, with the subject "Renewal call", and assign it to Jon Berg.',
            anything,
            (
                {
                    "kind": "created",
                    "customer": renewal.id,
                    "priority": "P2",
                    "subject": "Renewal call",
                    "assignee": ids["Jon Berg"],
                },
            ),
        ),
        Task(
            "tag-at-risk",
            'Tag all open tickets of unhappy customers with "at-risk". A customer is unhappy if they '
            "gave at least three ratings and these average below 3. How many tickets did you tag?",
            number(len(risky)),
            tuple(change(ticket, "tag", "at-risk") for ticket in risky),
        ),
    ]
