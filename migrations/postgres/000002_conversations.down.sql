DROP TABLE members;
DROP TABLE conversations;
