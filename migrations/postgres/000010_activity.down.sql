DROP INDEX members_muted;
DROP INDEX members_groups;
DROP INDEX members_loose;
DROP INDEX members_settled;
ALTER TABLE users DROP COLUMN settled_unread;
ALTER TABLE conversations DROP COLUMN loose_from;
ALTER TABLE members
    DROP COLUMN settled,
    DROP COLUMN settled_unread,
    DROP COLUMN settled_at,
    DROP COLUMN peer_id;
