ALTER TABLE messages DROP COLUMN number; -- and with it the sequence and the index
