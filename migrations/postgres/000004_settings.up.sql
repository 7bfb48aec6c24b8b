-- What a user wants: quiet hours are wall-clock minutes of the day in an IANA zone.
CREATE TABLE settings (
    user_id     uuid    NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    notify      boolean NOT NULL DEFAULT true,
    quiet_from  integer CHECK (quiet_from BETWEEN 0 AND 1439),
    quiet_until integer CHECK (quiet_until BETWEEN 0 AND 1439),
    time_zone   text,
    CHECK ((quiet_from IS NULL) = (quiet_until IS NULL))
);

-- Until when a member doesn't want to hear of the conversation.
ALTER TABLE members ADD COLUMN muted_until timestamptz;
