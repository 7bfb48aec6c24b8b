-- What is stored and perhaps not yet shown to the members. A row is written with
-- its message and removed when the fan-out is done; whoever finds it after
-- leased_until takes over. Usually nearly empty.
CREATE TABLE outbox (
    created_at      INTEGER NOT NULL,
    conversation_id BLOB    NOT NULL,
    seq             INTEGER NOT NULL,
    leased_until    INTEGER NOT NULL,
    PRIMARY KEY (conversation_id, seq),
    FOREIGN KEY (conversation_id, seq) REFERENCES messages (conversation_id, seq) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX outbox_by_age ON outbox (created_at, conversation_id, seq);
