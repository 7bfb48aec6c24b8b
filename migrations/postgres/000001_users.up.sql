-- People, and who has whom in the contact list.
CREATE TABLE users (
    id           uuid        NOT NULL PRIMARY KEY,
    external_id  text        UNIQUE,
    name         text        NOT NULL,
    avatar_url   text,
    last_seen_at timestamptz,
    created_at   timestamptz NOT NULL
);

CREATE TABLE contacts (
    user_id    uuid        NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    contact_id uuid        NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (user_id, contact_id)
);

-- For the foreign key: who has this person.
CREATE INDEX contacts_by_contact ON contacts (contact_id);
