package rooms_test

import (
	"strconv"
	"strings"
	"testing"

	"xabar/internal/testkit/redistest"
	"xabar/rooms"
)

// TestAClosedConnectionIsNotUsedAgain: the driver sees through our sockets that the server has closed
// one that waits in its pool, and makes another; a command sent on it would be lost.
func TestAClosedConnectionIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client, _, err := rooms.Client(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	for range 20 {
		number, err := client.Do(t.Context(), "CLIENT", "ID").Int64()
		if err != nil {
			t.Fatalf("on a connection of the pool: %v", err)
		}
		id := strconv.FormatInt(number, 10)
		server.Do("CLIENT", "KILL", "ID", id)
		eventually(t, "the server has closed it", func() bool {
			list, _ := server.Do("CLIENT", "LIST", "ID", id).(string)
			return !strings.Contains(list, "id="+id+" ")
		})
	}
}
