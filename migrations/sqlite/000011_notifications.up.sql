-- What is to be looked at again because a message may not have arrived. reason: 1 it
-- was not delivered, 2 its user wants to be reminded of what is unread. One row for
-- each wait: id names it, and changes with the next one. wake_at is when a sweep
-- takes the row, or takes it over from a process that has died meanwhile; held says
-- that quiet hours keep it back.
CREATE TABLE notification_due (
    id              BLOB    NOT NULL,
    user_id         BLOB    NOT NULL,
    conversation_id BLOB    NOT NULL,
    seq             INTEGER NOT NULL,
    wake_at         INTEGER NOT NULL,
    reason          INTEGER NOT NULL CHECK (reason IN (1, 2)),
    looks           INTEGER NOT NULL DEFAULT 0,
    held            INTEGER NOT NULL DEFAULT 0 CHECK (held IN (0, 1)),
    PRIMARY KEY (user_id, conversation_id, reason)
) STRICT, WITHOUT ROWID;

CREATE INDEX notification_due_by_time ON notification_due (wake_at, user_id);

-- Up to where it has been decided whether the member is notified. What is undelivered
-- now is old news.
ALTER TABLE members ADD COLUMN notified_seq INTEGER NOT NULL DEFAULT 0;
UPDATE members SET notified_seq = (SELECT last_seq FROM conversations c WHERE c.id = members.conversation_id);

-- More of what a user wants. channels_off are names between commas.
ALTER TABLE settings ADD COLUMN language TEXT NOT NULL DEFAULT '';
ALTER TABLE settings ADD COLUMN only_direct INTEGER NOT NULL DEFAULT 0 CHECK (only_direct IN (0, 1));
ALTER TABLE settings ADD COLUMN hide_text INTEGER NOT NULL DEFAULT 0 CHECK (hide_text IN (0, 1));
ALTER TABLE settings ADD COLUMN remind_minutes INTEGER NOT NULL DEFAULT 0 CHECK (remind_minutes BETWEEN 0 AND 10080);
ALTER TABLE settings ADD COLUMN channels_off TEXT NOT NULL DEFAULT '';

CREATE INDEX settings_reminders ON settings (user_id) WHERE remind_minutes > 0;

-- Where users are reached: an address belongs to whoever added it last.
CREATE TABLE notify_targets (
    id         BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    user_id    BLOB    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    channel    TEXT    NOT NULL,
    address    TEXT    NOT NULL CHECK (length(CAST(address AS BLOB)) BETWEEN 1 AND 2048),
    target     TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (channel, address)
) STRICT;

CREATE INDEX notify_targets_by_user ON notify_targets (user_id, channel, created_at, id);

-- Codes by which a channel finds a user, once.
CREATE TABLE link_codes (
    channel    TEXT    NOT NULL,
    code       TEXT    NOT NULL,
    user_id    BLOB    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (channel, code),
    UNIQUE (user_id, channel)
) STRICT, WITHOUT ROWID;

-- What is shared without a configuration: keys that the first process makes, and who
-- does what only one may do.
CREATE TABLE secrets (
    name  TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE leases (
    name       TEXT    NOT NULL PRIMARY KEY,
    holder     BLOB    NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
