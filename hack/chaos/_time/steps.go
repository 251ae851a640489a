package time

import (
	"syscall"
	"unsafe"
)

// ahead is how many nanoseconds, never negative, the wall clock of the process is ahead of the machine's, in a file
// that others write; nil: it is the machine's.
var ahead = mapped("BERTH_CHAOS_CLOCK")

// mapped is the first eight bytes of the file that an environment variable names.
func mapped(variable string) *int64 {
	path, found := syscall.Getenv(variable)
	if !found {
		return nil
	}
	file, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		panic("opening the clock " + path + ": " + err.Error())
	}
	content, err := syscall.Mmap(file, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic("reading the clock " + path + ": " + err.Error())
	}
	_ = syscall.Close(file) // the mapping lasts
	return (*int64)(unsafe.Pointer(&content[0]))
}

// stepped is what the wall clock shows. The monotonic clock, by which timers run and durations are measured, goes on as
// it was.
func stepped(sec int64, nsec int32) (int64, int32) {
	if ahead == nil {
		return sec, nsec
	}
	total := int64(nsec) + *ahead
	return sec + total/1e9, int32(total % 1e9)
}
