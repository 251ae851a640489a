package leak

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// leaving are tests that leave a goroutine behind, which ends with the channel.
type leaving struct {
	end  <-chan time.Time
	code int
}

func (l leaving) Run() int {
	go func() { <-l.end }()
	return l.code
}

// The tests look at all goroutines of the process, so they are not parallel.

func TestGoroutinesThatEndLateAreWaitedFor(t *testing.T) {
	late := leaving{end: time.After(2 * time.Second)}
	if code := (patient{late, time.Minute, nil}).Run(); code != 0 {
		t.Errorf("tests that passed end with %d", code)
	}
	if err := goleak.Find(); err != nil {
		t.Errorf("a goroutine that needs two seconds to end was not waited for: %v", err)
	}
}

func TestGoroutinesThatStayAreFound(t *testing.T) {
	end := make(chan time.Time)
	if code := (patient{leaving{end: end}, 0, nil}).Run(); code != 0 {
		t.Errorf("tests that passed end with %d", code)
	}
	if goleak.Find() == nil {
		t.Error("a goroutine that stays is not found")
	}
	close(end)
}

func TestTestsThatFailedAreNotWaitedFor(t *testing.T) {
	end := make(chan time.Time)
	defer close(end)
	began := time.Now()
	if code := (patient{leaving{end: end, code: 3}, time.Hour, nil}).Run(); code != 3 {
		t.Errorf("tests that failed with 3 end with %d", code)
	}
	if waited := time.Since(began); waited > time.Minute {
		t.Errorf("it waited for %s", waited)
	}
}
