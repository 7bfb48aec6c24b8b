DROP TABLE leases;
DROP TABLE secrets;
DROP TABLE link_codes;
DROP TABLE notify_targets;
DROP INDEX settings_reminders;
ALTER TABLE settings
    DROP COLUMN language,
    DROP COLUMN only_direct,
    DROP COLUMN hide_text,
    DROP COLUMN remind_minutes,
    DROP COLUMN channels_off;
ALTER TABLE members DROP COLUMN notified_seq;
DROP TABLE notification_due;
