-- What a user wants: quiet hours are wall-clock minutes of the day in an IANA zone.
CREATE TABLE settings (
    user_id     BLOB    NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    notify      INTEGER NOT NULL DEFAULT 1 CHECK (notify IN (0, 1)),
    quiet_from  INTEGER CHECK (quiet_from BETWEEN 0 AND 1439),
    quiet_until INTEGER CHECK (quiet_until BETWEEN 0 AND 1439),
    time_zone   TEXT,
    CHECK ((quiet_from IS NULL) = (quiet_until IS NULL))
) STRICT, WITHOUT ROWID;

-- Until when a member doesn't want to hear of the conversation.
ALTER TABLE members ADD COLUMN muted_until INTEGER;
