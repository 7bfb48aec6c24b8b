-- Members see a group from their own joining on; every change of a conversation
-- counts its version up, and a message carries that of its last change.
ALTER TABLE members ADD COLUMN joined_seq bigint NOT NULL DEFAULT 0;

ALTER TABLE conversations ADD COLUMN version bigint NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN member_count integer NOT NULL DEFAULT 0;
UPDATE conversations SET
    version = last_seq,
    member_count = (SELECT count(*) FROM members m WHERE m.conversation_id = conversations.id);

-- version is NULL as long as it is that of the message's birth, which is its seq:
-- so the archive is not rewritten, and the column costs a stored message nothing.
ALTER TABLE messages ADD COLUMN version bigint;
ALTER TABLE messages ADD COLUMN reply_to_seq bigint;
ALTER TABLE messages ADD COLUMN edited_at timestamptz;
ALTER TABLE messages ADD COLUMN deleted_at timestamptz;
-- When something about the message changed last (edit, deletion, reaction); NULL
-- as long as it is as first stored. Keeps the index of changes to what changed.
ALTER TABLE messages ADD COLUMN changed_at timestamptz;

CREATE INDEX messages_changed ON messages (conversation_id, version) WHERE changed_at IS NOT NULL;
