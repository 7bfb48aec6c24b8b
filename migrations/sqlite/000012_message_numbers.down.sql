DROP TRIGGER messages_number;
DROP TABLE message_numbers;
DROP INDEX messages_by_number;
ALTER TABLE messages DROP COLUMN number;
