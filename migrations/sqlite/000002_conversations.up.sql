-- A direct conversation carries its sorted pair, so that there is one per pair; a
-- group has a title. last_seq is the number of the last message and gives the
-- next one its own; positions only grow.
CREATE TABLE conversations (
    id              BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    kind            TEXT    NOT NULL CHECK (kind IN ('direct', 'group')),
    title           TEXT,
    user_low        BLOB    REFERENCES users (id),
    user_high       BLOB    REFERENCES users (id),
    last_seq        INTEGER NOT NULL DEFAULT 0,
    last_message_at INTEGER,
    created_at      INTEGER NOT NULL,
    CHECK ((kind = 'direct') = (user_low IS NOT NULL AND user_high IS NOT NULL)),
    CHECK ((kind = 'group') = (title IS NOT NULL)),
    CHECK (user_low < user_high)
) STRICT;

CREATE UNIQUE INDEX conversations_pair ON conversations (user_low, user_high) WHERE kind = 'direct';

CREATE TABLE members (
    conversation_id    BLOB    NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    user_id            BLOB    NOT NULL REFERENCES users (id),
    role               TEXT    NOT NULL CHECK (role IN ('owner', 'admin', 'member')),
    last_delivered_seq INTEGER NOT NULL DEFAULT 0,
    last_read_seq      INTEGER NOT NULL DEFAULT 0,
    joined_at          INTEGER NOT NULL,
    PRIMARY KEY (conversation_id, user_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX members_by_user ON members (user_id, conversation_id);
CREATE INDEX members_by_joining ON members (conversation_id, joined_at, user_id);
