-- After a crash an answer's hold pinned credits until its lease was over, a quarter of an hour. Who makes
-- an answer is written down, so that the hold ends once that process beats no more.
-- compatible-from: 0027
-- locks: chat_generations, for a moment however many rows
ALTER TABLE chat_generations ADD COLUMN process text;
