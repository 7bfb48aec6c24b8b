-- One number for each message of the whole server, for clients that name messages by
-- one: unique, and rising with seq inside a conversation. Old messages are numbered in
-- the order of their times, and by seq within a conversation (whose times never fall).
--
-- A program that knows nothing of numbers goes on storing messages: the default
-- numbers them. The sequence gives single numbers (CACHE 1), so that nodes which take
-- turns in a conversation keep the order.
--
-- As in 000005 the table is copied: from the first line to the commit writers wait,
-- readers go on with the old rows until the swap at the end, and no dead rows are left.
-- 100,000 messages take about a second, and as much free disk as the table has now.
LOCK TABLE messages IN SHARE ROW EXCLUSIVE MODE;

CREATE SEQUENCE message_numbers AS bigint;

CREATE TABLE messages_new (LIKE messages INCLUDING ALL EXCLUDING INDEXES);
ALTER TABLE messages_new ADD COLUMN number bigint NOT NULL;

INSERT INTO messages_new
SELECT m.*, row_number() OVER (ORDER BY created_at, conversation_id, seq)
FROM messages m
ORDER BY conversation_id, seq;

SELECT setval('message_numbers', greatest((SELECT count(*) FROM messages_new), 1), EXISTS (SELECT 1 FROM messages_new));

ALTER TABLE messages_new ALTER COLUMN number SET DEFAULT nextval('message_numbers');
ALTER SEQUENCE message_numbers OWNED BY messages_new.number;

ALTER TABLE messages_new ADD CONSTRAINT messages_new_pkey PRIMARY KEY (conversation_id, seq);
CREATE UNIQUE INDEX messages_by_number ON messages_new (number);
CREATE UNIQUE INDEX messages_new_by_client ON messages_new (sender_id, client_msg_id) WHERE client_msg_id IS NOT NULL;
CREATE INDEX messages_new_changed ON messages_new (conversation_id, version) WHERE changed_at IS NOT NULL;
CREATE INDEX messages_new_without_client ON messages_new (sender_id, conversation_id, seq) WHERE client_msg_id IS NULL;

DROP TABLE messages;
ALTER TABLE messages_new RENAME TO messages;
ALTER INDEX messages_new_pkey RENAME TO messages_pkey;
ALTER INDEX messages_new_by_client RENAME TO messages_by_client;
ALTER INDEX messages_new_changed RENAME TO messages_changed;
ALTER INDEX messages_new_without_client RENAME TO messages_without_client;
