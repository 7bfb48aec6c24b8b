package rooms_test

import (
	"fmt"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"xabar/chat"
	"xabar/internal/testkit/redistest"
)

var usedCPU = regexp.MustCompile(`used_cpu_(?:sys|user):([0-9.]+)`)

// redisCPU is the time that the server has used, in seconds.
func redisCPU(b *testing.B, server *redistest.Server) (seconds float64) {
	b.Helper()
	for _, found := range usedCPU.FindAllStringSubmatch(fmt.Sprint(server.Do("INFO", "cpu")), -1) {
		s, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			b.Fatal(err)
		}
		seconds += s
	}
	return seconds
}

// ownCPU is what this process has used, in seconds.
func ownCPU(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return (time.Duration(u.Utime.Nano()) + time.Duration(u.Stime.Nano())).Seconds()
}

// BenchmarkBus is a direct message from one node to another, both in this process, without what their
// hubs do with it. pace is the number of messages that are sent at a time: with 1 none waits
// for others, as on an idle system.
func BenchmarkBus(b *testing.B) {
	for _, pace := range []int{1, 16, 256} {
		b.Run(fmt.Sprint("pace ", pace), func(b *testing.B) {
			server := redistest.Start(b)
			opts := isolated()
			x, y := startNode(b, server.URL, opts), startNode(b, server.URL, opts)
			healthy(b, x.Redis, y.Redis)
			alice, bob := chat.NewID(), chat.NewID()
			if _, _, err := x.bus.Hold(b.Context(), []chat.ID{alice}, nil); err != nil {
				b.Fatal(err)
			}
			if _, _, err := y.bus.Hold(b.Context(), []chat.ID{bob}, nil); err != nil {
				b.Fatal(err)
			}
			message := direct(1, alice, bob)
			redis, own := redisCPU(b, server), ownCPU(b)
			b.ReportAllocs()
			b.ResetTimer()
			for sent := 0; sent < b.N; {
				for range min(pace, b.N-sent) {
					sent++
					if err := x.bus.Publish(b.Context(), message); err != nil {
						b.Fatal(err)
					}
				}
				y.await(sent)
			}
			b.StopTimer()
			b.ReportMetric((ownCPU(b)-own)*1e6/float64(b.N), "own-µs/op")
			b.ReportMetric((redisCPU(b, server)-redis)*1e6/float64(b.N), "redis-µs/op")
			b.ReportMetric(float64(x.Stats().RoundTrips)/float64(b.N), "trips/op")
		})
	}
}
