-- What is stored and perhaps not yet shown to the members. A row is written with
-- its message and removed when the fan-out is done; whoever finds it after
-- leased_until takes over. Usually nearly empty, but a whole backlog after a
-- crash. Many rows come and go: vacuum early.
CREATE TABLE outbox (
    created_at      timestamptz NOT NULL,
    conversation_id uuid        NOT NULL,
    seq             bigint      NOT NULL,
    leased_until    timestamptz NOT NULL,
    PRIMARY KEY (conversation_id, seq)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);

CREATE INDEX outbox_by_lease ON outbox (leased_until);
