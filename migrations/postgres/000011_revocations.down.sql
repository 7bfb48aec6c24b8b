DROP INDEX messages_without_client;
DROP TABLE revocations;
