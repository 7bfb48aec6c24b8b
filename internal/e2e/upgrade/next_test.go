package upgrade

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"xabar/chat"
	"xabar/internal/testkit"
	"xabar/internal/testkit/pgtest"
	"xabar/migrations"
	"xabar/persistence"
)

// exec runs statements on the database, as a migration or an operator does.
func (d *deployment) exec(statements ...string) {
	d.Helper()
	ctx := testkit.Context(d)
	conn, err := pgx.Connect(ctx, d.database)
	if err != nil {
		d.Fatal(err)
	}
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			d.Errorf("%s: %v", statement, err)
		}
	}
	if err := conn.Close(ctx); err != nil {
		d.Error(err)
	}
}

// The next version's migration, made compatible with this one as docs/guides/upgrading.md asks:
// nodes of this version go on under it, and one that crashes starts again. One that is not
// compatible keeps them out.
func TestNodesOfThisVersionOnTheSchemaOfTheNext(t *testing.T) {
	t.Parallel()
	d := deploy(t, "", pgtest.Database(t))
	traffic := d.traffic()
	traffic.Flows(50)
	latest, err := migrations.Latest(migrations.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	version := func(oldest int) []string {
		return []string{
			fmt.Sprintf("UPDATE schema_migrations SET version = %d", latest+1),
			"DELETE FROM schema_compatibility",
			fmt.Sprintf("INSERT INTO schema_compatibility (version, oldest) VALUES (%d, %d)", latest+1, oldest),
		}
	}
	d.exec(append(version(latest),
		"ALTER TABLE messages ADD COLUMN next text",
		"ALTER TABLE members ADD COLUMN next bigint NOT NULL DEFAULT 0",
		"CREATE TABLE next (id uuid PRIMARY KEY)",
		"ANALYZE")...)
	traffic.Flows(50)
	d.nodes[0].Kill()
	d.nodes[0].Restart()
	d.ready()
	traffic.Flows(50)
	d.live()
	d.check(traffic)

	d.exec(version(latest + 1)...)
	path, err := testkit.Binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx := testkit.Context(t)
	out, err := exec.CommandContext(ctx, path, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
		"--data-dir", t.TempDir(), "--database-url", d.database, "--jwt-secret", secret).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(string(out), migrations.ErrNewer.Error()) {
		t.Errorf("on a schema that it does not know a node says %v\n%s", err, out)
	}
}

// What a node of a newer version tells the others in a way that they can't read yet is read from
// the database: sockets hear of it without reconnecting, in order.
func TestWhatANewerNodeSaysIsReadFromTheDatabase(t *testing.T) {
	t.Parallel()
	d := deploy(t, "", pgtest.Database(t))
	a, b := d.person(0, "a"), d.person(1, "b")
	conversation := a.Open(t, obj{"userId": b.ID})
	ctx := testkit.Context(t)
	if _, err := a.Send(ctx, conversation, "x1", "before"); err != nil {
		t.Fatal(err)
	}
	newer, err := persistence.Open(ctx, d.database, persistence.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := newer.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, id := range []string{"x2", "x3"} {
		stored := make(chan error, 1)
		newer.Send(ctx, chat.SendMessage{SenderID: a.ID, ConversationID: conversation, ClientMsgID: id, Text: "of a newer node"},
			func(r chat.SendResult, err error) {
				if err == nil { // it has told the others: no outbox brings it
					newer.CloseOutbox(chat.OutboxKey{ConversationID: conversation, Seq: r.Message.Seq})
				}
				stored <- err
			})
		if err := <-stored; err != nil {
			t.Fatal(err)
		}
	}
	d.publishNewer(ctx, b.ID)
	eventually(t, "b hears what the newer node stored", func() bool { return len(b.Messages(conversation)) == 3 })
	if _, err := a.Send(ctx, conversation, "x4", "after"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "b hears what comes then", func() bool { return len(b.Messages(conversation)) == 4 })
	if differences, _, err := b.Differences(ctx, conversation); err != nil || len(differences) > 0 {
		t.Errorf("%v, %v", differences, err)
	}
	if told := b.Told(); told.Lives != 1 || len(told.Faults) > 0 {
		t.Errorf("b: %+v", told)
	}
	if _, metrics := d.nodes[1].Get("/metrics"); !strings.Contains(metrics, "\nxabar_redis_unknown_total 1\n") {
		t.Error("the node does not count what it could not read")
	}
}

// publishNewer tells the nodes where the user is connected something in an envelope of the next
// version.
func (d *deployment) publishNewer(ctx context.Context, user chat.ID) {
	d.Helper()
	options, err := redis.ParseURL(d.redis)
	if err != nil {
		d.Fatal(err)
	}
	client := redis.NewClient(options)
	envelope := append([]byte{2, 1}, bytes.Repeat([]byte{0xEE}, 200)...)
	heard, err := client.Publish(ctx, "xabar:1:user:"+base64.RawURLEncoding.EncodeToString(user[:]), envelope).Result()
	if err = errors.Join(err, client.Close()); err != nil || heard != 1 {
		d.Fatalf("%d nodes heard it, %v", heard, err)
	}
}
