package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"k8s.io/klog/v2"
)

// writable fails early if a file cannot be written, before the work for its content begins.
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

// memoryLimit is the soft limit of memory while a scheduler runs on a copy of a cluster.
const memoryLimit = 1200 << 20

// collectSeldom makes the garbage collector run less often until the returned function is called: a scheduler on a copy
// of a cluster allocates much and keeps little. The memory limit bounds the garbage.
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

// silenceLogs keeps the scheduler's logs off the terminal: failures are returned as errors. Without contextual logging
// the scheduler does not create a logger for each node either.
func silenceLogs() {
	klog.EnableContextualLogging(false)
	klog.SetLoggerWithOptions(klog.Logger{}, klog.ContextualLogger(true))
}
