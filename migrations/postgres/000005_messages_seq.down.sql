-- Back to order by time. Every message stays; its number, the clients' ids and the
-- positions, which mean nothing without numbers, go. created_at never falls while
-- seq rises, so that most of the order stays too; messages of one moment fall back
-- to the order of their ids. Locks as on the way up.
LOCK TABLE conversations, members, messages IN SHARE ROW EXCLUSIVE MODE;

CREATE TABLE messages_old (
    id              uuid        NOT NULL,
    conversation_id uuid        NOT NULL,
    sender_id       uuid        NOT NULL,
    text            text        NOT NULL CHECK (char_length(text) BETWEEN 1 AND 2000),
    created_at      timestamptz NOT NULL
);

INSERT INTO messages_old (id, conversation_id, sender_id, text, created_at)
SELECT id, conversation_id, sender_id, text, created_at FROM messages;

UPDATE conversations SET last_seq = 0 WHERE last_seq <> 0;
UPDATE members SET last_delivered_seq = 0, last_read_seq = 0
WHERE last_delivered_seq <> 0 OR last_read_seq <> 0;

DROP TABLE messages;
ALTER TABLE messages_old RENAME TO messages;
ALTER TABLE messages ADD CONSTRAINT messages_pkey PRIMARY KEY (id);
ALTER TABLE messages ADD FOREIGN KEY (conversation_id) REFERENCES conversations (id) ON DELETE CASCADE;
ALTER TABLE messages ADD FOREIGN KEY (sender_id) REFERENCES users (id);
CREATE INDEX messages_by_time ON messages (conversation_id, created_at, id);
