-- A direct conversation carries its sorted pair, so that there is one per pair; a
-- group has a title. last_seq is the number of the last message and gives the
-- next one its own; positions only grow.
--
-- Rows of both tables change with every message, without touching an index: the
-- free space lets the new version stay on the same page (HOT).
CREATE TABLE conversations (
    id              uuid        NOT NULL PRIMARY KEY,
    kind            text        NOT NULL CHECK (kind IN ('direct', 'group')),
    title           text,
    user_low        uuid        REFERENCES users (id),
    user_high       uuid        REFERENCES users (id),
    last_seq        bigint      NOT NULL DEFAULT 0,
    last_message_at timestamptz,
    created_at      timestamptz NOT NULL,
    CHECK ((kind = 'direct') = (user_low IS NOT NULL AND user_high IS NOT NULL)),
    CHECK ((kind = 'group') = (title IS NOT NULL)),
    CHECK (user_low < user_high)
) WITH (fillfactor = 70);

CREATE UNIQUE INDEX conversations_pair ON conversations (user_low, user_high) WHERE kind = 'direct';

CREATE TABLE members (
    conversation_id    uuid        NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    user_id            uuid        NOT NULL REFERENCES users (id),
    role               text        NOT NULL CHECK (role IN ('owner', 'admin', 'member')),
    last_delivered_seq bigint      NOT NULL DEFAULT 0,
    last_read_seq      bigint      NOT NULL DEFAULT 0,
    joined_at          timestamptz NOT NULL,
    PRIMARY KEY (conversation_id, user_id)
) WITH (fillfactor = 70);

CREATE INDEX members_by_user ON members (user_id, conversation_id);
CREATE INDEX members_by_joining ON members (conversation_id, joined_at, user_id);
