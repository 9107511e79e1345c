"""The stores of an organization, and the plan that says how many it may have."""
