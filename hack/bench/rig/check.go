package rig

// failure is what ends a benchmark.
type failure struct{ error }

// Fail ends the benchmark if there is an error, as Fatal ends a test: a program has a line for each thing that it does
// and none for what can go wrong with it. The error says itself what failed.
func Fail(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Must returns a value, or ends the benchmark.
func Must[T any](value T, err error) T {
	Fail(err)
	return value
}

// Catch returns the error with which f ended the benchmark. A goroutine needs one of its own.
func Catch(f func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.error
		default:
			panic(r)
		}
	}()
	f()
	return nil
}
