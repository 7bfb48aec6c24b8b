package engineio

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// BenchmarkHeartbeat is what moving a deadline costs, which each pong does, among many connections that
// all have one: in the wheel, and with a timer for each as the alternative. B/conn is the heap that they
// take.
func BenchmarkHeartbeat(b *testing.B) {
	const connections = 50_000
	interval := 25 * time.Second
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	b.Run("wheel", func(b *testing.B) {
		w := newWheel(&Options{PingInterval: interval, PingTimeout: interval})
		sockets := make([]Socket, connections)
		for i := range sockets {
			w.schedule(&sockets[i], int64(interval))
		}
		b.ResetTimer()
		for i := range b.N {
			w.schedule(&sockets[i%connections], w.now()+int64(interval))
		}
		b.ReportMetric(float64(unsafe.Sizeof(wheelLink{})), "B/conn")
	})
	b.Run("timers", func(b *testing.B) {
		var fired atomic.Int64
		timers := make([]*time.Timer, connections)
		before := heap()
		for i := range timers {
			timers[i] = time.AfterFunc(interval, func() { fired.Add(int64(i)) })
		}
		used := float64(heap()-before) / connections
		b.ResetTimer()
		for i := range b.N {
			timers[i%connections].Reset(interval)
		}
		b.ReportMetric(used, "B/conn")
		b.StopTimer()
		for _, t := range timers {
			t.Stop()
		}
	})
}
