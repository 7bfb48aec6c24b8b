-- What is to be looked at again because a message may not have arrived. reason: 1 it
-- was not delivered, 2 its user wants to be reminded of what is unread. One row for
-- each wait: id names it, and changes with the next one. wake_at is when a sweep
-- takes the row, or takes it over from a node that has died meanwhile; held says that
-- quiet hours keep it back. Rows come and go with every absent member's messages:
-- vacuum early.
CREATE TABLE notification_due (
    id              uuid        NOT NULL,
    user_id         uuid        NOT NULL,
    conversation_id uuid        NOT NULL,
    seq             bigint      NOT NULL,
    wake_at         timestamptz NOT NULL,
    reason          smallint    NOT NULL CHECK (reason IN (1, 2)),
    looks           smallint    NOT NULL DEFAULT 0,
    held            boolean     NOT NULL DEFAULT false,
    PRIMARY KEY (user_id, conversation_id, reason)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);

CREATE INDEX notification_due_by_time ON notification_due (wake_at, user_id);

-- Up to where it has been decided whether the member is notified. What is undelivered
-- now is old news.
ALTER TABLE members ADD COLUMN notified_seq bigint NOT NULL DEFAULT 0;
UPDATE members m SET notified_seq = c.last_seq
FROM conversations c WHERE c.id = m.conversation_id AND m.last_delivered_seq < c.last_seq;

-- More of what a user wants. channels_off are names between commas.
ALTER TABLE settings
    ADD COLUMN language       text    NOT NULL DEFAULT '',
    ADD COLUMN only_direct    boolean NOT NULL DEFAULT false,
    ADD COLUMN hide_text      boolean NOT NULL DEFAULT false,
    ADD COLUMN remind_minutes integer NOT NULL DEFAULT 0 CHECK (remind_minutes BETWEEN 0 AND 10080),
    ADD COLUMN channels_off   text    NOT NULL DEFAULT '';

CREATE INDEX settings_reminders ON settings (user_id) WHERE remind_minutes > 0;

-- Where users are reached: an address belongs to whoever added it last.
CREATE TABLE notify_targets (
    id         uuid        NOT NULL PRIMARY KEY,
    user_id    uuid        NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    channel    text        NOT NULL,
    address    text        NOT NULL CHECK (octet_length(address) BETWEEN 1 AND 2048),
    target     text        NOT NULL,
    created_at timestamptz NOT NULL,
    UNIQUE (channel, address)
);

CREATE INDEX notify_targets_by_user ON notify_targets (user_id, channel, created_at, id);

-- Codes by which a channel finds a user, once.
CREATE TABLE link_codes (
    channel    text        NOT NULL,
    code       text        NOT NULL,
    user_id    uuid        NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (channel, code),
    UNIQUE (user_id, channel)
);

-- What nodes share without a configuration: keys that the first one makes, and who
-- does what only one may do.
CREATE TABLE secrets (
    name  text  NOT NULL PRIMARY KEY,
    value bytea NOT NULL
);

CREATE TABLE leases (
    name       text        NOT NULL PRIMARY KEY,
    holder     uuid        NOT NULL,
    expires_at timestamptz NOT NULL
);
