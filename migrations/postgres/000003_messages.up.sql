-- PostgreSQL's text can't hold U+0000.
CREATE TABLE messages (
    id              uuid        NOT NULL PRIMARY KEY,
    conversation_id uuid        NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    sender_id       uuid        NOT NULL REFERENCES users (id),
    text            text        NOT NULL CHECK (char_length(text) BETWEEN 1 AND 2000),
    created_at      timestamptz NOT NULL
);

CREATE INDEX messages_by_time ON messages (conversation_id, created_at, id);
