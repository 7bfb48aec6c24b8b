package postgres

// sendSQL stores a batch of messages. Its parameters are arrays of equal length,
// sorted by conversation and, inside one, in the order of the calls: ids,
// conversations, senders, clientMsgIds, texts, replyToSeqs, whether the system sends;
// then the time of creation, the outbox lease ($9: the time to count from, NULL for
// the database's clock; $10: seconds), and the size up to which reads are logged.
//
//	item   each message with what must be known of it: the repeat (d), the sender's
//	       membership (m), and from them its status (the status… constants)
//	per    the good ones, one row per conversation, their columns as arrays
//	up     numbers them: the row lock on the conversation is held until the commit,
//	       so that seqs are committed in order
//	       Who joined after this statement's snapshot (what changes members counts
//	       the version up, but not last_seq) is invisible to pos and may be settled
//	       already. If pos is to make members loose, the statement then gives itself
//	       up (division by zero, the only error that SQL can raise) and is run again
//	ins    the messages. A race lost on (sender_id, client_msg_id) inserts nothing
//	       and leaves a hole; the caller sees it by the count. Their numbers come from the
//	       sequence row by row, in the order of up's arrays and behind its lock, so that
//	       they rise with seq
//	touched
//	       the members whose rows pos may write. By itself and materialized: where
//	       another transaction has just written the row, PostgreSQL tests the joined
//	       row again, and a lateral join in the UPDATE's own FROM would not pass that
//	pos    the sender's own positions: whoever sent the first messages of the batch
//	       to a conversation and holds everything before them (by the number, or
//	       because nothing but holes lies between; that look needs the snapshot to be
//	       current). Also makes all members' rows loose if some may be settled
//
// The conditions on the targets of the UPDATEs are ranges of one value instead of
// equality on purpose: an equality could be joined in any order, and small tables
// would be; this way the index look-up per row, in the order of the arrays, is the
// only plan there is.
//
// The answer has four kinds of row (the first column).
const sendSQL = `
WITH item AS MATERIALIZED (
  SELECT i.*, m.delivered, m.read, m.peer_id,
         d.id AS d_id, d.conversation_id AS d_conv, d.seq AS d_seq, d.version AS d_version,
         d.text AS d_text, d.reply_to_seq AS d_reply, d.created_at AS d_created,
         d.edited_at AS d_edited, d.deleted_at AS d_deleted, d.number AS d_number,
         CASE
           WHEN d.id IS NOT NULL THEN 1
           WHEN m.joined_seq IS NULL AND (NOT i.system OR
             (SELECT 1 FROM conversations g WHERE g.id = i.conv AND g.kind = 'group' LIMIT 1) IS NULL) THEN 2
           WHEN m.peer_id IS NOT NULL AND NOT i.system AND coalesce(
             (SELECT 1 FROM blocks b WHERE b.user_id = i.sender AND b.blocked_id = m.peer_id LIMIT 1),
             (SELECT 1 FROM blocks b WHERE b.user_id = m.peer_id AND b.blocked_id = i.sender LIMIT 1)) IS NOT NULL THEN 3
           WHEN i.reply IS NOT NULL AND (i.reply <= coalesce(m.joined_seq, 0) OR
             (SELECT 1 FROM messages r WHERE r.conversation_id = i.conv AND r.seq = i.reply LIMIT 1) IS NULL) THEN 4
           ELSE 0
         END AS status
  FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::int8[], $7::bool[])
       WITH ORDINALITY AS i (id, conv, sender, cmid, body, reply, system, ord)
  LEFT JOIN LATERAL (
    SELECT x.id, x.conversation_id, x.seq, coalesce(x.version, x.seq) AS version, x.text, x.reply_to_seq,
           x.created_at, x.edited_at, x.deleted_at, x.number
    FROM messages x WHERE x.sender_id = i.sender AND x.client_msg_id = i.cmid LIMIT 1) d ON true
  LEFT JOIN LATERAL (
    SELECT x.last_delivered_seq AS delivered, x.last_read_seq AS read, x.peer_id, x.joined_seq
    FROM members x WHERE x.conversation_id = i.conv AND x.user_id = i.sender LIMIT 1) m ON true
), per AS (
  SELECT g.conv, count(*) AS n, array_agg(g.id) AS ids, array_agg(g.sender) AS senders,
         array_agg(g.cmid) AS cmids, array_agg(g.body) AS bodies, array_agg(g.reply) AS replies,
         (array_agg(g.read))[1] AS lead_read, (array_agg(g.delivered))[1] AS lead_held
  FROM (SELECT * FROM item WHERE status = 0 ORDER BY conv, ord) g
  GROUP BY g.conv ORDER BY g.conv
), up AS (
  UPDATE conversations c
  SET last_seq = c.last_seq + per.n,
      version = c.version + per.n,
      last_message_at = greatest($8::timestamptz, c.last_message_at),
      loose_from = CASE WHEN c.loose_from = 0 THEN c.last_seq + per.n ELSE c.loose_from END
  FROM per
  WHERE c.id >= per.conv AND c.id <= per.conv
  RETURNING c.id, c.last_seq, c.version, c.last_message_at AS at, c.member_count,
            c.loose_from = c.last_seq AS loosened, c.last_seq - per.n AS base, c.version - per.n AS version_base,
            per.n, per.ids, per.senders, per.cmids, per.bodies, per.replies, per.lead_read, per.lead_held,
            CASE WHEN per.n = 1 THEN 1 ELSE (
              SELECT coalesce(min(o) - 1, per.n) FROM unnest(per.senders) WITH ORDINALITY AS u (s, o)
              WHERE s <> per.senders[1]) END AS run,
            CASE WHEN c.loose_from = c.last_seq AND
              (SELECT s.version - s.last_seq FROM conversations s WHERE s.id = c.id LIMIT 1) <> c.version - c.last_seq
            THEN 1 / (c.last_seq - c.last_seq) END AS stale
), ins AS (
  INSERT INTO messages (id, conversation_id, seq, version, sender_id, client_msg_id, text, reply_to_seq, created_at)
  SELECT x.id, up.id, up.base + x.k, nullif(up.version_base, up.base) + x.k, x.sender, x.cmid, x.body, x.reply, up.at
  FROM up CROSS JOIN LATERAL unnest(up.ids, up.senders, up.cmids, up.bodies, up.replies)
       WITH ORDINALITY AS x (id, sender, cmid, body, reply, k)
  ON CONFLICT (sender_id, client_msg_id) WHERE client_msg_id IS NOT NULL DO NOTHING
  RETURNING conversation_id, seq, created_at, number
), box AS (
  INSERT INTO outbox (created_at, conversation_id, seq, leased_until)
  SELECT created_at, conversation_id, seq, coalesce($9::timestamptz, statement_timestamp()) + $10::float8 * interval '1 second'
  FROM ins
), touched AS MATERIALIZED (
  SELECT up.id, up.base, up.run, up.loosened, up.lead_read, up.member_count, up.at, w.user_id,
         w.user_id = up.senders[1] AS leads,
         w.user_id = up.senders[1] AND w.held < up.base AND
           (SELECT s.last_seq FROM conversations s WHERE s.id = up.id LIMIT 1) = up.base AND
           (SELECT 1 FROM messages s WHERE s.conversation_id = up.id AND s.seq > w.held AND s.seq <= up.base LIMIT 1) IS NULL AS holes
  FROM up CROSS JOIN LATERAL (
    SELECT up.senders[1] AS user_id, up.lead_held AS held WHERE NOT up.loosened
    UNION ALL
    SELECT y.user_id, y.last_delivered_seq FROM members y
    WHERE y.conversation_id = up.id AND up.loosened) w
), pos AS (
  UPDATE members m
  SET settled = false,
      last_delivered_seq = CASE WHEN t.leads AND (m.last_delivered_seq >= t.base OR t.holes) THEN t.base + t.run ELSE m.last_delivered_seq END,
      last_read_seq = CASE WHEN t.leads AND (m.last_delivered_seq >= t.base OR t.holes) THEN t.base + t.run ELSE m.last_read_seq END
  FROM touched t
  WHERE (m.conversation_id, m.user_id) >= (t.id, t.user_id) AND (m.conversation_id, m.user_id) <= (t.id, t.user_id)
    AND (t.loosened OR t.leads AND (m.last_delivered_seq >= t.base OR t.holes))
  RETURNING m.conversation_id, m.user_id, t.leads AND m.last_delivered_seq = t.base + t.run AS leads,
            t.base, t.run, t.lead_read, t.member_count, t.at
), log AS (
  INSERT INTO receipts (conversation_id, user_id, kind, up_to_seq, at)
  SELECT conversation_id, user_id, 2, base + run, at
  FROM pos WHERE leads AND lead_read < base AND member_count <= $11::int8
  ON CONFLICT DO NOTHING
)
SELECT 1::int8, ord, status::int8, delivered, read, d_seq, d_version, d_reply,
       peer_id, d_id, d_conv, d_created, d_edited, d_deleted, d_text, d_number
FROM item
UNION ALL
SELECT 2, last_seq, version, member_count, n, run, NULL, NULL, id, NULL, NULL, at, NULL, NULL, NULL, NULL FROM up
UNION ALL
SELECT 3, base + run, NULL, NULL, NULL, NULL, NULL, NULL, conversation_id, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM pos WHERE leads
UNION ALL
SELECT 4, seq, NULL, NULL, NULL, NULL, NULL, NULL, conversation_id, NULL, NULL, NULL, NULL, NULL, NULL, number FROM ins`

// Status of an item of sendSQL.
const (
	statusGood = iota
	statusRepeat
	statusStranger
	statusBlocked
	statusNoSuchReply
)

// Kinds of rows in sendSQL's answer.
const (
	rowItem         = iota + 1 // one for each item, in the order of the arrays
	rowConversation            // one for each conversation that was numbered
	rowLead                    // a conversation whose first sender's positions moved
	rowInserted                // one for each message that was inserted, with its number
)

// racedSQL reads what is stored under (sender, clientMsgId), in the order of the
// arrays.
const racedSQL = `
SELECT i.ord, x.id, x.conversation_id, x.seq, coalesce(x.version, x.seq), x.text, x.reply_to_seq,
       x.created_at, x.edited_at, x.deleted_at, x.number
FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY AS i (sender, cmid, ord)
CROSS JOIN LATERAL (
  SELECT * FROM messages m WHERE m.sender_id = i.sender AND m.client_msg_id = i.cmid LIMIT 1) x`
