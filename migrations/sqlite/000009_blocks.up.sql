-- Who wants no direct messages from, and no presence with, whom.
CREATE TABLE blocks (
    user_id    BLOB    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    blocked_id BLOB    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (user_id, blocked_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX blocks_by_blocked ON blocks (blocked_id, user_id);
