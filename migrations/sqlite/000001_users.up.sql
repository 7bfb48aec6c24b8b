-- People, and who has whom in the contact list. Ids are 16 bytes, times are Unix
-- milliseconds.
CREATE TABLE users (
    id           BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    external_id  TEXT    UNIQUE,
    name         TEXT    NOT NULL,
    avatar_url   TEXT,
    last_seen_at INTEGER,
    created_at   INTEGER NOT NULL
) STRICT;

CREATE TABLE contacts (
    user_id    BLOB    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    contact_id BLOB    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (user_id, contact_id)
) STRICT, WITHOUT ROWID;

-- For the foreign key: who has this person.
CREATE INDEX contacts_by_contact ON contacts (contact_id);
