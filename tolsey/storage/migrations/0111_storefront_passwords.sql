-- Before a store opens its pages are behind a password. A merchant may tell it for the look before opening; it is kept
-- sealed, with the launch that it is for.
-- compatible-from: 0036
-- locks: store_launches, for a moment however many rows
ALTER TABLE store_launches ADD COLUMN storefront_password text;
