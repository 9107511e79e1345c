-- A plan by contract wants a manual check of who the customer is and a signed contract (rules/plans#contracts):
-- where both are filed is recorded with it.
-- compatible-from: 0025
-- locks: contracts, for a moment however many rows
ALTER TABLE contracts ADD COLUMN kyc text;
ALTER TABLE contracts ADD COLUMN signed_contract text;
