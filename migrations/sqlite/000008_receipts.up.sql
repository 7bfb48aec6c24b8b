-- The log of positions' advances in conversations of up to 32 members. A message
-- was delivered to (read by) a member at the time of the first advance that
-- reaches it. kind: 1 delivered, 2 read.
CREATE TABLE receipts (
    conversation_id BLOB    NOT NULL,
    user_id         BLOB    NOT NULL,
    kind            INTEGER NOT NULL CHECK (kind IN (1, 2)),
    up_to_seq       INTEGER NOT NULL,
    at              INTEGER NOT NULL,
    PRIMARY KEY (conversation_id, user_id, kind, up_to_seq),
    FOREIGN KEY (conversation_id, user_id) REFERENCES members (conversation_id, user_id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
