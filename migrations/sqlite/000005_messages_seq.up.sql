-- Gives every message its number in its conversation, in the order that readers
-- have seen so far (created_at, id), and room for the client's own id. What is
-- stored counts as delivered and read: an archive is not unread.
--
-- SQLite can't add NOT NULL to a column that is there, so the table is rebuilt,
-- now in the order of (conversation_id, seq). The whole run is one write
-- transaction: readers go on with the old schema, writers wait for as long as
-- copying all messages takes (100,000: a few seconds on two cores).
CREATE TABLE messages_new (
    id              BLOB    NOT NULL UNIQUE CHECK (length(id) = 16),
    conversation_id BLOB    NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    seq             INTEGER NOT NULL CHECK (seq >= 1),
    sender_id       BLOB    NOT NULL REFERENCES users (id),
    client_msg_id   TEXT,
    text            TEXT    NOT NULL CHECK (length(text) BETWEEN 1 AND 2000 AND instr(text, char(0)) = 0),
    created_at      INTEGER NOT NULL,
    PRIMARY KEY (conversation_id, seq)
) STRICT, WITHOUT ROWID;

INSERT INTO messages_new (id, conversation_id, seq, sender_id, text, created_at)
SELECT id, conversation_id,
       row_number() OVER (PARTITION BY conversation_id ORDER BY created_at, id),
       sender_id, text, created_at
FROM messages;

DROP TABLE messages;
ALTER TABLE messages_new RENAME TO messages;

CREATE UNIQUE INDEX messages_by_client ON messages (sender_id, client_msg_id) WHERE client_msg_id IS NOT NULL;

UPDATE conversations SET
    last_seq = coalesce((SELECT max(seq) FROM messages m WHERE m.conversation_id = conversations.id), 0),
    last_message_at = coalesce(last_message_at,
        (SELECT max(created_at) FROM messages m WHERE m.conversation_id = conversations.id));

UPDATE members SET
    last_delivered_seq = (SELECT last_seq FROM conversations c WHERE c.id = members.conversation_id),
    last_read_seq      = (SELECT last_seq FROM conversations c WHERE c.id = members.conversation_id);
