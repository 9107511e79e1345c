-- An order's lines, discounts and shipping as the shop delivered them, for its owner's agents. NULL where
-- no delivery told them since.
-- compatible-from: 0025
-- locks: commerce_orders, for a moment however many rows
ALTER TABLE commerce_orders ADD COLUMN parts jsonb;

-- Texts as people look for them: without case, accents, and letters that keyboards lack. Immutable, so
-- that an index can be built on it.
CREATE FUNCTION folded(said text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN replace(replace(replace(translate(
    regexp_replace(normalize(lower(said), NFKD), '[\u0300-\u036f]', '', 'g'),
    'øłđħıŧ', 'oldhit'), 'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe');
