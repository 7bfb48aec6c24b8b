package rooms

import "sync"

// maxSerial is how many jobs of one serial may wait.
const maxSerial = 1024

// tasks are goroutines that somebody waits for in the end.
type tasks struct {
	mu     sync.Mutex // guards closed, and that nothing starts after it
	closed bool
	wg     sync.WaitGroup
}

// start runs f on a goroutine of its own, unless the end has come.
func (t *tasks) start(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.wg.Go(f)
	return true
}

// close lets nothing more start and waits for what runs.
func (t *tasks) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.wg.Wait()
}

// serial runs jobs one after the other, on a goroutine that lives while there are any.
type serial struct {
	tasks *tasks

	mu      sync.Mutex // guards the fields below
	jobs    []func()
	running bool
}

func newSerial(t *tasks) *serial { return &serial{tasks: t} }

// do queues a job and says whether there was room.
func (s *serial) do(job func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.jobs) >= maxSerial {
		return false
	}
	s.jobs = append(s.jobs, job)
	if s.running {
		return true
	}
	s.running = s.tasks.start(s.run)
	return s.running
}

func (s *serial) run() {
	for {
		s.mu.Lock()
		if len(s.jobs) == 0 {
			s.running = false
			s.mu.Unlock()
			return
		}
		job := s.jobs[0]
		s.jobs = s.jobs[1:]
		s.mu.Unlock()
		job()
	}
}
