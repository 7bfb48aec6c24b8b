// Package pgtest gives tests a real PostgreSQL.
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
//	func TestX(t *testing.T)    { url := pgtest.Database(t); … }
//
// The first test that asks starts one server for the whole test process, in a
// temporary folder on a free port of 127.0.0.1, as the user "postgres" when the
// tests run as root (PostgreSQL refuses root). Every test gets a database of its
// own, cloned from a migrated template in some 30 ms. Main stops the server; a
// process that dies takes it along (Linux).
//
// XABAR_TEST_POSTGRES_URL names a running server instead; its user must be
// allowed to create databases. Tests that stop and restart their server use
// Start, which always runs one of its own.
package pgtest
