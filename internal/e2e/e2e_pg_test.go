package e2e

import (
	"context"

	"github.com/jackc/pgx/v5"

	"xabar/chat"
	"xabar/internal/testkit"
)

// holdConversation locks a conversation's row, as a send's transaction does, until
// release is called.
func (w *world) holdConversation(conversation chat.ID) (release func()) {
	w.t.Helper()
	ctx := testkit.Context(w.t)
	conn, err := pgx.Connect(ctx, w.database)
	if err != nil {
		w.t.Fatal(err)
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `SELECT 1 FROM conversations WHERE id = $1 FOR UPDATE`, [16]byte(conversation)); err != nil {
		w.t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(context.Background()); err != nil {
			w.t.Error(err)
		}
		if err := conn.Close(context.Background()); err != nil {
			w.t.Error(err)
		}
	}
}
