DROP INDEX messages_changed;
ALTER TABLE messages DROP COLUMN changed_at;
ALTER TABLE messages DROP COLUMN deleted_at;
ALTER TABLE messages DROP COLUMN edited_at;
ALTER TABLE messages DROP COLUMN reply_to_seq;
ALTER TABLE messages DROP COLUMN version;
ALTER TABLE conversations DROP COLUMN member_count;
ALTER TABLE conversations DROP COLUMN version;
ALTER TABLE members DROP COLUMN joined_seq;
