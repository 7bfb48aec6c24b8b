-- One number for each message of the whole server, for clients that name messages by
-- one: unique, never given twice, and rising with seq inside a conversation. Old
-- messages are numbered in the order of their times, and by seq within a conversation
-- (whose times never fall).
--
-- The trigger numbers what a program stores that knows nothing of numbers.
ALTER TABLE messages ADD COLUMN number INTEGER;

UPDATE messages SET number = n.number
FROM (
    SELECT conversation_id, seq, row_number() OVER (ORDER BY created_at, conversation_id, seq) AS number
    FROM messages
) n
WHERE n.conversation_id = messages.conversation_id AND n.seq = messages.seq;

CREATE UNIQUE INDEX messages_by_number ON messages (number);

-- One row: the last number that was given.
CREATE TABLE message_numbers (last INTEGER NOT NULL) STRICT;
INSERT INTO message_numbers (last) SELECT count(*) FROM messages;

CREATE TRIGGER messages_number AFTER INSERT ON messages WHEN NEW.number IS NULL
BEGIN
    UPDATE message_numbers SET last = last + 1;
    UPDATE messages SET number = (SELECT last FROM message_numbers)
    WHERE conversation_id = NEW.conversation_id AND seq = NEW.seq;
END;
