-- length() stops at U+0000, so that one is looked for by itself.
CREATE TABLE messages (
    id              BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    conversation_id BLOB    NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    sender_id       BLOB    NOT NULL REFERENCES users (id),
    text            TEXT    NOT NULL CHECK (length(text) BETWEEN 1 AND 2000 AND instr(text, char(0)) = 0),
    created_at      INTEGER NOT NULL
) STRICT;

CREATE INDEX messages_by_time ON messages (conversation_id, created_at, id);
