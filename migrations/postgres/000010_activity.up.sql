-- Lists and totals of a user with any number of conversations, without a write
-- per member and message.
--
-- A member row is *settled* when what the conversation list needs of its
-- conversation is written in it: settled_at (the time of the last message, or of
-- the creation) is exact, everything is delivered, and settled_unread is what
-- unread was. Lists read settled rows from an index in their order and look only
-- at the others, the *loose* ones, one by one. A background step of the store
-- settles rows when a user has many loose ones. The rules that keep this true:
--
--   1. A message makes all rows of its conversation loose. conversations.loose_from
--      spares the work: 0 says that some row may be settled; else all are loose
--      (the seq of the message that made them so; -1 from the beginning).
--   2. Whoever moves last_read_seq or muted_until makes the row loose.
--   3. users.settled_unread is the sum of settled_unread over all rows of the user,
--      the loose ones included: the total is that sum plus, for loose rows, what
--      changed since. Settling and removing a member keep it so, under the user's
--      advisory lock.
--
-- Making a row loose is always safe. peer_id is the other member of a direct
-- conversation, NULL in groups.
ALTER TABLE members
    ADD COLUMN peer_id        uuid,
    ADD COLUMN settled_at     timestamptz,
    ADD COLUMN settled_unread bigint  NOT NULL DEFAULT 0,
    ADD COLUMN settled        boolean NOT NULL DEFAULT false,
    ADD CHECK (NOT settled OR settled_at IS NOT NULL);

ALTER TABLE conversations ADD COLUMN loose_from bigint NOT NULL DEFAULT -1;
ALTER TABLE users ADD COLUMN settled_unread bigint NOT NULL DEFAULT 0;

UPDATE members m SET peer_id = CASE WHEN m.user_id = c.user_low THEN c.user_high ELSE c.user_low END
FROM conversations c WHERE c.id = m.conversation_id AND c.kind = 'direct';

CREATE INDEX members_settled ON members (user_id, settled_at DESC, conversation_id DESC) WHERE settled;
CREATE INDEX members_loose ON members (user_id) WHERE NOT settled;
CREATE INDEX members_groups ON members (user_id, conversation_id) WHERE peer_id IS NULL;
CREATE INDEX members_muted ON members (user_id, muted_until) WHERE muted_until IS NOT NULL;
