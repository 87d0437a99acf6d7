"""A support desk: customers, agents, tickets with comments, and a service level agreement."""
