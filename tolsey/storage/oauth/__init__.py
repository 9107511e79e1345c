"""SQL for agents: clients, the requests that wait for their users, and what users let them do."""
