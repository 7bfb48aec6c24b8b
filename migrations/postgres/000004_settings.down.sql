ALTER TABLE members DROP COLUMN muted_until;
DROP TABLE settings;
