package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"k8s.io/klog/v2"
)

// writable finds out that a file cannot be written before the work for it is done.
func writable(flag, path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return badInput(fmt.Errorf("--%s: %s is a folder; must be a file", flag, path))
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return badInput(fmt.Errorf("--%s: %w", flag, err))
	}
	return nil
}

// memoryLimit is what a scheduler on a copy of a cluster keeps to, as long as it can.
const memoryLimit = 1200 << 20

// collectSeldom is for such a scheduler, which makes much garbage and keeps little: until the function that it returns
// is called, garbage is collected seldom, but before memory grows out of bounds.
func collectSeldom() (end func()) {
	percent, limit := debug.SetGCPercent(1000), debug.SetMemoryLimit(-1)
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}

// silenceLogs keeps what the scheduler logs off the terminal: its answers are what counts, and a failure comes back as
// an error. Neither does it make a logger of its own then for each node that it looks at.
func silenceLogs() {
	klog.EnableContextualLogging(false)
	klog.SetLoggerWithOptions(klog.Logger{}, klog.ContextualLogger(true))
}
