"""What is agreed beside the plans on offer: contracts, and the codes of affiliates."""
