-- Whose sockets were to be closed, and whose tokens are refused, since when. Nodes
-- read what is new.
CREATE TABLE revocations (
    user_id       uuid        NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    tokens_before timestamptz,
    subject_hash  bytea, -- of the external id: it is still known when the person is erased
    at            timestamptz NOT NULL
);

CREATE INDEX revocations_by_time ON revocations (at);

-- A person's messages, for an export or an erasure: those with an id of the client's
-- are found by that; these are the ones from before there was one, so that a new
-- message costs nothing more. Sends wait while it is built.
CREATE INDEX messages_without_client ON messages (sender_id, conversation_id, seq) WHERE client_msg_id IS NULL;
