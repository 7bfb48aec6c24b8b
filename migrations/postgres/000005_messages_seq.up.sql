-- Gives every message its number in its conversation, in the order that readers
-- have seen so far (created_at, id), and room for the client's own id. What is
-- stored counts as delivered and read: an archive is not unread.
--
-- Locks: from the first line to the commit, writers of conversations, members and
-- messages wait (SHARE ROW EXCLUSIVE); readers go on with the old rows until the
-- swap at the end, whose ACCESS EXCLUSIVE lock on messages is held for the updates
-- of the last step only. The table is copied, not updated in place: no dead rows
-- are left, and each index is built once over finished rows. 100,000 messages
-- take about a second, 10,000,000 a few minutes, and as much free disk as the
-- table has now.
--
-- The foreign keys of messages go, and with them two look-ups and two row locks a
-- message: the statement that stores a message checks the membership itself, and
-- whoever deletes conversations or people deletes their messages (chat.Maintenance).
-- So does the index on the id: a message is named by conversation and seq, ids are
-- unique by the way they are made.
LOCK TABLE conversations, members, messages IN SHARE ROW EXCLUSIVE MODE;

CREATE TABLE messages_new (
    id              uuid        NOT NULL,
    conversation_id uuid        NOT NULL,
    seq             bigint      NOT NULL CHECK (seq >= 1),
    sender_id       uuid        NOT NULL,
    client_msg_id   text,
    text            text        NOT NULL CHECK (char_length(text) BETWEEN 1 AND 2000),
    created_at      timestamptz NOT NULL
);

INSERT INTO messages_new (id, conversation_id, seq, sender_id, text, created_at)
SELECT id, conversation_id,
       row_number() OVER (PARTITION BY conversation_id ORDER BY created_at, id),
       sender_id, text, created_at
FROM messages
ORDER BY conversation_id, created_at, id;

ALTER TABLE messages_new ADD CONSTRAINT messages_new_pkey PRIMARY KEY (conversation_id, seq);
CREATE UNIQUE INDEX messages_by_client ON messages_new (sender_id, client_msg_id) WHERE client_msg_id IS NOT NULL;

CREATE TEMPORARY TABLE numbered ON COMMIT DROP AS
SELECT conversation_id, max(seq) AS last_seq, max(created_at) AS last_message_at
FROM messages_new GROUP BY conversation_id;
ANALYZE numbered;

UPDATE conversations c SET
    last_seq = n.last_seq,
    last_message_at = coalesce(c.last_message_at, n.last_message_at)
FROM numbered n WHERE n.conversation_id = c.id;

UPDATE members m SET last_delivered_seq = n.last_seq, last_read_seq = n.last_seq
FROM numbered n WHERE n.conversation_id = m.conversation_id;

DROP TABLE messages;
ALTER TABLE messages_new RENAME TO messages;
ALTER INDEX messages_new_pkey RENAME TO messages_pkey;
