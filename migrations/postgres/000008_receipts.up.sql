-- The log of positions' advances in conversations of up to 32 members. A message
-- was delivered to (read by) a member at the time of the first advance that
-- reaches it. kind: 1 delivered, 2 read. Whoever removes a member removes its rows.
CREATE TABLE receipts (
    conversation_id uuid        NOT NULL,
    user_id         uuid        NOT NULL,
    up_to_seq       bigint      NOT NULL,
    at              timestamptz NOT NULL,
    kind            smallint    NOT NULL CHECK (kind IN (1, 2)),
    PRIMARY KEY (conversation_id, user_id, kind, up_to_seq)
);
