package ratelimit

import (
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// clocked are buckets whose time the test steps.
func clocked(rate Rate, limit int) (*Buckets[int], *int64) {
	now := int64(time.Hour)
	b := New[int](rate, limit)
	b.now = func() int64 { return now }
	return b, &now
}

func TestABurstAndThenTheRate(t *testing.T) {
	b, now := clocked(Rate{PerSecond: 10, Burst: 5}, 100)
	for i := range 5 {
		if wait, ok := b.Take(1); !ok {
			t.Fatalf("token %d of the burst: wait %v", i, wait)
		}
	}
	wait, ok := b.Take(1)
	if ok || wait != 100*time.Millisecond {
		t.Fatalf("beyond the burst: %v, wait %v", ok, wait)
	}
	if _, ok := b.Take(2); !ok {
		t.Error("another key pays for the first")
	}
	*now += int64(wait) - 1
	if wait, ok := b.Take(1); ok || wait != 1 {
		t.Errorf("a nanosecond early: %v, wait %v", ok, wait)
	}
	*now++
	if _, ok := b.Take(1); !ok {
		t.Error("the wait was kept and still refused")
	}
	*now += int64(time.Hour)
	for range 5 {
		if _, ok := b.Take(1); !ok {
			t.Error("the bucket did not fill up again")
		}
	}
	if _, ok := b.Take(1); ok {
		t.Error("the bucket filled beyond its burst")
	}
}

func TestATokenThatIsGivenBackCanBeTakenAgain(t *testing.T) {
	b, _ := clocked(Rate{PerSecond: 1, Burst: 1}, 100)
	for range 10 {
		if _, ok := b.Take(1); !ok {
			t.Fatal("refused")
		}
		b.Return(1)
	}
	b.Return(2) // never taken: nothing to give
	b.Take(1)
	if _, ok := b.Take(1); ok {
		t.Error("there is one token too many")
	}
}

// However tokens are asked for, in no window of time are there more than the burst
// and what came back in it.
func TestNeverMoreThanTheRateAllows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := Rate{PerSecond: rapid.Float64Range(0.01, 1e6).Draw(t, "rate"), Burst: rapid.IntRange(1, 50).Draw(t, "burst")}
		b, now := clocked(rate, 100)
		begin, taken := *now, 0
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			*now += rapid.Int64Range(0, int64(2*float64(time.Second)/rate.PerSecond)).Draw(t, "step")
			if _, ok := b.Take(7); ok {
				taken++
			}
		}
		allowed := float64(rate.Burst) + time.Duration(*now-begin).Seconds()*rate.PerSecond*1.0001 + 1e-6
		if float64(taken) > allowed+1 {
			t.Fatalf("%d tokens, allowed are %v", taken, allowed)
		}
	})
}

func TestKeysAreBounded(t *testing.T) {
	b, now := clocked(Rate{PerSecond: 1, Burst: 2}, 1600)
	for i := range 100_000 {
		b.Take(i)
	}
	if n := b.Len(); n > 1600 {
		t.Errorf("%d keys are remembered", n)
	}
	// Those that are full again make room, and none of the others is forgotten.
	*now += int64(time.Hour)
	for i := range 100 {
		b.Take(-i)
		b.Take(-i)
	}
	for i := range 100 {
		if _, ok := b.Take(-i); ok {
			t.Fatalf("the bucket of %d was forgotten", -i)
		}
	}
}

func TestOffIsNoLimit(t *testing.T) {
	b := New[int](Rate{}, 10)
	var none *Buckets[int]
	var one Bucket
	for range 1000 {
		if _, ok := b.Take(1); !ok {
			t.Fatal("off refuses")
		}
		if _, ok := none.Take(1); !ok {
			t.Fatal("nil refuses")
		}
		if _, ok := one.Take(Rate{}); !ok {
			t.Fatal("off refuses one bucket")
		}
	}
	none.Return(1)
	if b.Len() != 0 {
		t.Error("off remembers keys")
	}
}

func TestABucketByItself(t *testing.T) {
	var b Bucket
	rate := Rate{PerSecond: 0.001, Burst: 3}
	for i := range 3 {
		if _, ok := b.Take(rate); !ok {
			t.Fatalf("token %d is refused", i)
		}
	}
	if wait, ok := b.Take(rate); ok || wait < 900*time.Second || wait > 1000*time.Second {
		t.Errorf("%v, wait %v", ok, wait)
	}
}

func TestTakenByManyAtOnce(t *testing.T) {
	b, _ := clocked(Rate{PerSecond: 1, Burst: 100}, 1000)
	var mu sync.Mutex
	taken := 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if _, ok := b.Take(1); ok {
					mu.Lock()
					taken++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if taken != 100 {
		t.Errorf("%d of 100 tokens were taken", taken)
	}
}

func BenchmarkTake(b *testing.B) {
	buckets := New[[16]byte](Rate{PerSecond: 1e9, Burst: 1 << 20}, 1<<16)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		var key [16]byte
		for pb.Next() {
			key[0]++
			buckets.Take(key)
		}
	})
}
