-- A launch tells people what they have to know: that the store opened before its pre-launch check, that it takes test
-- orders once it is open, that something has waited for them for days, and that it is done. The tax that an order at home
-- carries is calculated once an hour at most, and kept until then.
-- compatible-from: 0036
-- locks: store_launches and launch_milestones, for a moment however many rows
ALTER TABLE store_launches
    ADD COLUMN alarms text NOT NULL DEFAULT '',
    ADD COLUMN tax_lines int,
    ADD COLUMN taxed_at timestamptz,
    ADD COLUMN finished_at timestamptz;
ALTER TABLE launch_milestones ADD COLUMN reminders int NOT NULL DEFAULT 0;
