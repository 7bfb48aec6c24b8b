-- Back to order by time. Every message stays; its number, the clients' ids and the
-- positions, which mean nothing without numbers, go. created_at never falls while
-- seq rises, so that most of the order stays too; messages of one millisecond fall
-- back to the order of their ids.
CREATE TABLE messages_old (
    id              BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    conversation_id BLOB    NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    sender_id       BLOB    NOT NULL REFERENCES users (id),
    text            TEXT    NOT NULL CHECK (length(text) BETWEEN 1 AND 2000 AND instr(text, char(0)) = 0),
    created_at      INTEGER NOT NULL
) STRICT;

INSERT INTO messages_old (id, conversation_id, sender_id, text, created_at)
SELECT id, conversation_id, sender_id, text, created_at FROM messages;

DROP TABLE messages;
ALTER TABLE messages_old RENAME TO messages;
CREATE INDEX messages_by_time ON messages (conversation_id, created_at, id);

UPDATE conversations SET last_seq = 0;
UPDATE members SET last_delivered_seq = 0, last_read_seq = 0;
