CREATE TABLE IF NOT EXISTS users (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  external_id text NOT NULL UNIQUE
);
CREATE TABLE IF NOT EXISTS conversations (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  title text,
  low bigint, -- of the two users of a direct one
  high bigint,
  last_seq bigint NOT NULL DEFAULT 0,
  last_message_at timestamptz,
  UNIQUE (low, high)
);
CREATE TABLE IF NOT EXISTS members (
  conversation_id bigint NOT NULL REFERENCES conversations,
  user_id bigint NOT NULL REFERENCES users,
  last_delivered_seq bigint NOT NULL DEFAULT 0,
  last_read_seq bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (conversation_id, user_id)
) WITH (fillfactor = 70);
CREATE INDEX IF NOT EXISTS members_of_user ON members (user_id);
CREATE TABLE IF NOT EXISTS messages (
  conversation_id bigint NOT NULL REFERENCES conversations,
  seq bigint NOT NULL,
  sender_id bigint NOT NULL REFERENCES users,
  client_msg_id text NOT NULL,
  text text NOT NULL CHECK (char_length(text) BETWEEN 1 AND 2000),
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (conversation_id, seq),
  UNIQUE (sender_id, client_msg_id)
);
CREATE TABLE IF NOT EXISTS outbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  conversation_id bigint NOT NULL,
  seq bigint NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS receipts (
  conversation_id bigint NOT NULL,
  user_id bigint NOT NULL,
  kind "char" NOT NULL,
  seq bigint NOT NULL,
  at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS receipts_of ON receipts (conversation_id, user_id, kind, seq);
