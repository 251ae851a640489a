package rig

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"k8s.io/klog/v2"
)

// Main is the main function of a program with one measurement and the flags that it has declared. The first line of
// about says what is measured.
func Main(about string, measure func(ctx context.Context, out io.Writer) (results any, err error)) {
	file := flag.String("json", "", JSONUsage)
	name := filepath.Base(os.Args[0])
	flag.Usage = func() {
		_, _ = fmt.Fprintf(flag.CommandLine.Output(), "%s %s\n\nFlags:\n", name, about)
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%s: unexpected argument %q\n", name, flag.Arg(0))
		os.Exit(1)
	}
	if err := Measure(os.Stdout, *file, measure); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// JSONUsage is of the flag with the file for Measure.
const JSONUsage = "write the figures as JSON to this file"

// Quiet drops what libraries log: that a watch ends with its control plane, for example, is no result.
func Quiet() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
}

// Progress tells how far a benchmark is, on standard error.
func Progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// outcome is what a benchmark writes as JSON: its figures, and what a reader has to know about the machine.
type outcome struct {
	Command []string  `json:"command"`
	Began   time.Time `json:"began"`
	Seconds float64   `json:"seconds"`
	CPUs    int       `json:"cpus"`
	// OtherCores is how many cores were busy on average with what is no part of the benchmark.
	OtherCores float64 `json:"otherCores"`
	Results    any     `json:"results"`
}

// Measure measures until that ends or is interrupted, and prints how busy the machine was with other work. It writes
// the results that there are as JSON to a file if one is named, even if a later run has failed.
func Measure(out io.Writer, file string, measure func(context.Context, io.Writer) (any, error)) error {
	Quiet()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o := outcome{Command: append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...), CPUs: runtime.NumCPU()}
	began := time.Now()
	var err, failed error
	o.OtherCores, err = OtherCores(func() { o.Results, failed = measure(ctx, out) })
	if o.Results == nil || err != nil {
		return errors.Join(failed, err)
	}
	took := time.Since(began)
	o.Began, o.Seconds = began.UTC().Truncate(time.Second), took.Seconds()
	if _, err := fmt.Fprintf(out, "%s on %d cores; %.2f of them were busy with other work\n",
		took.Round(time.Second), o.CPUs, o.OtherCores); err != nil {
		return errors.Join(failed, fmt.Errorf("printing how busy the machine was: %w", err))
	}
	if file == "" {
		return failed
	}
	data, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return errors.Join(failed, fmt.Errorf("encoding the figures: %w", err))
	}
	if err := os.WriteFile(file, append(data, '\n'), 0o600); err != nil {
		return errors.Join(failed, fmt.Errorf("writing the figures: %w", err))
	}
	return failed
}
