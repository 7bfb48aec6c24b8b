DROP TABLE contacts;
DROP TABLE users;
