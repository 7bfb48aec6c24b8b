-- Who wants no direct messages from, and no presence with, whom.
CREATE TABLE blocks (
    user_id    uuid        NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    blocked_id uuid        NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (user_id, blocked_id)
);

CREATE INDEX blocks_by_blocked ON blocks (blocked_id, user_id);
