package await_test

import (
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/test/harness/await"
)

// failing is a test that ends where it fails, which it says.
type failing struct {
	testing.TB
	said chan string
}

func (failing) Helper() {}

func (f failing) Fatalf(format string, _ ...any) {
	f.said <- format
	panic("it ends here")
}

func TestAConditionThatNeverHoldsEndsTheTest(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(testing.TB){
		"Until": func(tb testing.TB) { await.Until(tb, "nothing", func() bool { return false }) },
		"Next":  func(tb testing.TB) { await.Next(tb, make(chan int), "nothing") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := failing{t, make(chan string, 1)}
				began := time.Now()
				func() {
					defer func() { _ = recover() }()
					wait(f)
					t.Error("the wait ends well")
				}()
				if took := time.Since(began); len(f.said) != 1 || took != 2*time.Minute {
					t.Errorf("it said %d things after %s", len(f.said), took)
				}
			})
		})
	}
}

func TestTheWaitEndsWithTheCondition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		await.Until(t, "a second", func() bool { return time.Since(began) >= time.Second })
		later := make(chan string)
		time.AfterFunc(time.Second, func() { later <- "it" })
		if got := await.Next(t, later, "another"); got != "it" || time.Since(began) != 2*time.Second {
			t.Errorf("got %q after %s", got, time.Since(began))
		}
	})
}
