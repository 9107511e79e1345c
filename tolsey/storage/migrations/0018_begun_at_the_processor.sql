-- What was begun at the payment processor, so that a request which dies on the way is known for what
-- it was: a refund that an operator decided is ended by whoever repeats it, and not judged anew.
ALTER TABLE payment_facts ADD COLUMN refund_asked_at timestamptz;
