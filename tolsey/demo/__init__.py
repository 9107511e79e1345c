"""`tolsey sandbox`: the main job on one's own machine, with stand-ins of the services it uses.

Everything goes over real HTTP, as a newcomer's browser, the commerce platform and the payment
processor would do it: sign up, open a store, connect the shop, verify its revenue, watch orders
arrive; then money: a plan, credits, an answer and its cost, a refund, a dispute, the next month.
"""
