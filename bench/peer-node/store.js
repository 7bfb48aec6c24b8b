// What the server keeps, and the transaction of a message in its two variants: `steps`,
// as most teams write it, and `cte`, one statement.
import { readFile } from "node:fs/promises";
import pg from "pg";

pg.types.setTypeParser(pg.types.builtins.INT8, Number);

export class Store {
  constructor(url, variant) {
    this.pool = new pg.Pool({ connectionString: url, max: 20 });
    this.sendMessage = variant === "steps" ? this.sendInSteps : this.sendInOne;
    this.done = []; // outbox rows whose events are out
  }

  async migrate() {
    const sql = await readFile(new URL("schema.sql", import.meta.url), "utf8");
    // Nodes that start together wait for each other.
    await this.pool.query(`BEGIN; SELECT pg_advisory_xact_lock(1); ${sql}; COMMIT`);
  }

  // Prepared once on each connection.
  query(name, text, values) {
    return this.pool.query({ name, text, values });
  }

  async user(externalId) {
    const { rows } = await this.query("user", `
      WITH new AS (INSERT INTO users (external_id) VALUES ($1) ON CONFLICT DO NOTHING RETURNING id)
      SELECT id FROM new UNION ALL SELECT id FROM users WHERE external_id = $1 LIMIT 1`, [externalId]);
    return rows[0]?.id ?? this.user(externalId);
  }

  async conversationsOf(user) {
    const { rows } = await this.query("conversations", "SELECT conversation_id AS id FROM members WHERE user_id = $1", [user]);
    return rows.map((row) => row.id);
  }

  async openDirect(a, b) {
    const { rows } = await this.query("direct", `
      WITH c AS (INSERT INTO conversations (low, high) VALUES (least($1::bigint, $2::bigint), greatest($1, $2))
        ON CONFLICT (low, high) DO UPDATE SET low = excluded.low RETURNING id),
      m AS (INSERT INTO members (conversation_id, user_id) SELECT id, u FROM c, unnest(ARRAY[$1, $2]) u ON CONFLICT DO NOTHING)
      SELECT id FROM c`, [a, b]);
    return rows[0].id;
  }

  async openGroup(title, users) {
    const { rows } = await this.query("group", `
      WITH c AS (INSERT INTO conversations (title) VALUES ($1) RETURNING id),
      m AS (INSERT INTO members (conversation_id, user_id) SELECT id, u FROM c, unnest($2::bigint[]) u)
      SELECT id FROM c`, [title, users]);
    return rows[0].id;
  }

  async sendInOne(conversation, sender, clientMsgId, text) {
    const { rows } = await this.query("send", `
      WITH old AS (
        SELECT seq, text, created_at FROM messages WHERE sender_id = $2 AND client_msg_id = $3
      ), c AS (
        UPDATE conversations SET last_seq = last_seq + 1, last_message_at = now()
        WHERE id = $1 AND NOT EXISTS (SELECT FROM old)
          AND EXISTS (SELECT FROM members WHERE conversation_id = $1 AND user_id = $2)
        RETURNING last_seq
      ), m AS (
        INSERT INTO messages (conversation_id, seq, sender_id, client_msg_id, text)
        SELECT $1, last_seq, $2, $3, $4 FROM c RETURNING seq, text, created_at
      ), p AS (
        UPDATE members SET last_delivered_seq = GREATEST(last_delivered_seq, last_seq), last_read_seq = GREATEST(last_read_seq, last_seq)
        FROM c WHERE conversation_id = $1 AND user_id = $2
      ), o AS (
        INSERT INTO outbox (conversation_id, seq) SELECT $1, seq FROM m RETURNING id
      )
      SELECT seq, text, created_at, (SELECT id FROM o) AS outbox FROM m
      UNION ALL SELECT seq, text, created_at, NULL FROM old`, [conversation, sender, clientMsgId, text]);
    return rows[0];
  }

  async sendInSteps(conversation, sender, clientMsgId, text) {
    const client = await this.pool.connect();
    const query = (name, text, values) => client.query({ name, text, values });
    try {
      await client.query("BEGIN");
      const { rows: [c] } = await query("s-conversation", `
        UPDATE conversations SET last_seq = last_seq + 1, last_message_at = now() WHERE id = $1
          AND EXISTS (SELECT FROM members WHERE conversation_id = $1 AND user_id = $2) RETURNING last_seq`, [conversation, sender]);
      if (!c) {
        await client.query("ROLLBACK");
        return undefined;
      }
      const { rows: [m] } = await query("s-message", `
        INSERT INTO messages (conversation_id, seq, sender_id, client_msg_id, text) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (sender_id, client_msg_id) DO NOTHING RETURNING seq, text, created_at`, [conversation, c.last_seq, sender, clientMsgId, text]);
      if (!m) {
        await client.query("ROLLBACK");
        const { rows } = await query("s-old", "SELECT seq, text, created_at FROM messages WHERE sender_id = $1 AND client_msg_id = $2", [sender, clientMsgId]);
        return rows[0];
      }
      await query("s-position", `
        UPDATE members SET last_delivered_seq = GREATEST(last_delivered_seq, $3), last_read_seq = GREATEST(last_read_seq, $3)
        WHERE conversation_id = $1 AND user_id = $2`, [conversation, sender, c.last_seq]);
      const { rows: [o] } = await query("s-outbox", "INSERT INTO outbox (conversation_id, seq) VALUES ($1, $2) RETURNING id", [conversation, m.seq]);
      await client.query("COMMIT");
      return { ...m, outbox: o.id };
    } catch (error) {
      await client.query("ROLLBACK").catch(() => {});
      throw error;
    } finally {
      client.release();
    }
  }

  // Rows of the outbox are removed together.
  fannedOut(id) {
    this.done.push(id);
    this.timer ??= setTimeout(async () => {
      const ids = this.done;
      this.done = [];
      this.timer = undefined;
      await this.query("fanned-out", "DELETE FROM outbox WHERE id = ANY($1::bigint[])", [ids]).catch(console.error);
    }, 20);
  }

  // A position of some members moves, and when it did is kept; kind is d or r.
  async move(conversation, users, kind, seq) {
    const column = kind === "r" ? "last_read_seq" : "last_delivered_seq";
    const { rows } = await this.query("move-" + kind, `
      WITH moved AS (
        UPDATE members SET ${column} = GREATEST(${column}, $3)
        WHERE conversation_id = $1 AND user_id = ANY($2::bigint[]) AND ${column} < $3 RETURNING user_id
      ), log AS (
        INSERT INTO receipts (conversation_id, user_id, kind, seq) SELECT $1, user_id, '${kind}', $3 FROM moved
        WHERE (SELECT count(*) FROM moved) <= 32
      )
      SELECT user_id FROM moved`, [conversation, users, seq]);
    return rows.map((row) => row.user_id);
  }

  async history(conversation, user, limit) {
    const { rows } = await this.query("history", `
      SELECT conversation_id AS "conversationId", seq, sender_id AS "senderId", text, created_at AS "createdAt" FROM messages
      WHERE conversation_id = $1 AND EXISTS (SELECT FROM members WHERE conversation_id = $1 AND user_id = $2)
      ORDER BY seq DESC LIMIT $3`, [conversation, user, limit]);
    return rows;
  }

  async sync(user, positions) {
    const { rows } = await this.query("sync", `
      SELECT m.conversation_id AS "conversationId", m.seq, m.sender_id AS "senderId", m.text, m.created_at AS "createdAt"
      FROM members p LEFT JOIN jsonb_each_text($2) AS held (id, seq) ON held.id = p.conversation_id::text
      CROSS JOIN LATERAL (SELECT * FROM messages WHERE conversation_id = p.conversation_id
        AND messages.seq > COALESCE(held.seq::bigint, 0) ORDER BY messages.seq LIMIT 50) m
      WHERE p.user_id = $1`, [user, JSON.stringify(positions)]);
    return rows;
  }
}
