// Package leak fails the tests of a package that leave goroutines behind.
package leak

import (
	"time"

	"go.uber.org/goleak"
)

// endWithin is how long goroutines may take to end after the last test. Informers and servers that were told to end
// need longer than the half second that goleak waits, on a machine that has other work.
const endWithin = time.Minute

// Main runs the tests and ends the process as goleak.VerifyTestMain does: with an error for goroutines that are left.
// Call it in TestMain.
func Main(m goleak.TestingM, options ...goleak.Option) {
	goleak.VerifyTestMain(patient{m, endWithin, options}, options...)
}

// patient gives goroutines time to end after the tests.
type patient struct {
	goleak.TestingM
	within  time.Duration
	options []goleak.Option
}

// Run returns the exit code of the tests. It waits only after tests that have passed, since goleak looks only then.
func (p patient) Run() int {
	code := p.TestingM.Run()
	for until := time.Now().Add(p.within); code == 0 && goleak.Find(p.options...) != nil && time.Now().Before(until); {
		continue
	}
	return code
}
