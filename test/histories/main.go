// Command histories looks for faults of the scheduler with random histories: a cluster, work that comes, changes and
// goes, nodes that change, restarts of the scheduler, and a network that delays and loses. The real scheduler with the
// shipped configuration lives through each of them on a virtual clock, while every binding is checked. A history that
// shows a fault is shortened to the few steps that it takes, and written to a file that shows it again:
//
//	go run ./test/histories --seeds 1-1000
//	go run ./test/histories --file history-17.yaml
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/test/histories/history"
	"berth.dev/berth/test/invariants"
)

// options of the command.
type options struct {
	first, last uint64
	file        string
	untilFault  bool
	child       bool
	verbosity   int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code, err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "histories:", err)
		code = 2
	}
	os.Exit(code)
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("histories", flag.ContinueOnError)
	flags.StringVar(&o.file, "file", "", "live through the history of this file, instead of random ones")
	flags.BoolVar(&o.untilFault, "until-fault", false,
		"begin no more histories after the first fault, and do not shorten it")
	flags.BoolVar(&o.child, "child", false, "live through the histories in this process, and print a line for each")
	flags.IntVar(&o.verbosity, "v", 0, "with --file: print the scheduler's log of at most this level to standard error")
	seeds := flags.String("seeds", "1-200", "seeds of the histories, FIRST-LAST")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if n, err := fmt.Sscanf(*seeds, "%d-%d", &o.first, &o.last); err != nil || n != 2 || o.last < o.first {
		return o, fmt.Errorf("--seeds %q: must be FIRST-LAST, such as 1-200", *seeds)
	}
	return o, nil
}

// run returns 0 when no history showed a fault, and 1 otherwise.
func run(ctx context.Context, args []string, out io.Writer) (int, error) {
	o, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0, nil
	case err != nil:
		return 2, err
	}
	if err := o.logging(); err != nil {
		return 2, err
	}
	switch {
	case o.child:
		return child(ctx, o, out)
	case o.file != "":
		return replayFile(ctx, o, out)
	}
	return search(ctx, o, out)
}

// logging keeps the scheduler quiet unless it is asked for its log.
func (o *options) logging() error {
	if o.verbosity == 0 {
		klog.LogToStderr(false)
		klog.SetOutput(io.Discard)
		return nil
	}
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	return flags.Set("v", strconv.Itoa(o.verbosity))
}

// child lives through histories in this process, which a fault of the scheduler may crash.
func child(ctx context.Context, o options, out io.Writer) (int, error) {
	configuration, err := schedulerconfig.Shipped()
	if err != nil {
		return 2, err
	}
	if o.file != "" {
		h, err := history.Read(o.file)
		if err != nil {
			return 2, err
		}
		return report(h, live(h, configuration, o.verbosity > 0), out)
	}
	code := 0
	for seed := o.first; seed <= o.last && ctx.Err() == nil; seed++ {
		h := history.Generate(seed)
		_, _ = fmt.Fprintln(out, "begin", seed)
		c, err := report(h, live(h, configuration, false), out)
		if err != nil {
			return 2, err
		}
		code = max(code, c)
	}
	return code, nil
}

func report(h *history.History, err error, out io.Writer) (int, error) {
	if err == nil {
		_, _ = fmt.Fprintf(out, "ok %d %s\n", h.Seed, h.Duration())
		return 0, nil
	}
	fault, ok := faultOf(err)
	if !ok {
		return 2, fmt.Errorf("history %d: %w", h.Seed, err)
	}
	_, _ = fmt.Fprintf(out, "fault %d %s\n", h.Seed, strings.ReplaceAll(fault.Error(), "\n", " "))
	return 1, nil
}

func replayFile(ctx context.Context, o options, out io.Writer) (int, error) {
	if o.verbosity > 0 {
		return child(ctx, o, out)
	}
	h, err := history.Read(o.file)
	if err != nil {
		return 2, err
	}
	fault, err := try(ctx, h)
	if err != nil {
		return 2, err
	}
	if fault == nil {
		_, _ = fmt.Fprintln(out, "no fault")
		return 0, nil
	}
	_, _ = fmt.Fprintln(out, fault)
	return 1, nil
}

// search lives through all seeds, in batches, one process each, and shortens what shows a fault.
func search(ctx context.Context, o options, out io.Writer) (int, error) {
	const batch = 20
	began := time.Now()
	var mu sync.Mutex
	var wait sync.WaitGroup
	var failed []error
	faults, lived, next := 0, uint64(0), o.first
	take := func() (first, last uint64, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		first = next
		last = min(first+batch-1, o.last)
		next = last + 1
		return first, last, first <= o.last && ctx.Err() == nil
	}
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for first, last, ok := take(); ok; first, last, ok = take() {
				for first <= last && ctx.Err() == nil {
					done, fault, err := batchOf(ctx, first, last)
					mu.Lock()
					lived += done - first
					if err != nil {
						failed = append(failed, err)
					}
					if fault != nil {
						lived++
						faults++
						_, _ = fmt.Fprintf(out, "%d: %s\n", done, fault)
						if o.untilFault {
							next = o.last + 1
						}
					}
					mu.Unlock()
					if err != nil || fault != nil && o.untilFault {
						return
					}
					if fault != nil {
						file, steps, err := shortened(ctx, done, fault)
						if err != nil {
							_, _ = fmt.Fprintf(out, "%d: not shortened: %v\n", done, err)
						} else {
							_, _ = fmt.Fprintf(out, "%d: %d steps in %s\n", done, steps, file)
						}
						done++
					}
					first = done
				}
			}
		})
	}
	wait.Wait()
	took := time.Since(began)
	_, _ = fmt.Fprintf(out, "%d histories in %s (%.0f an hour), %d faults\n", lived, took.Round(time.Second),
		float64(lived)/took.Hours(), faults)
	if faults > 0 {
		return 1, errors.Join(failed...)
	}
	return 0, errors.Join(failed...)
}

// shortenFor is how long a shorter history with the same fault is looked for.
const shortenFor = 2 * time.Minute

// shortened writes the shortest history found with the same fault to a file.
func shortened(ctx context.Context, seed uint64, fault *invariants.Fault) (file string, steps int, err error) {
	ctx, cancel := context.WithTimeout(ctx, shortenFor)
	defer cancel()
	h := history.Shorten(history.Generate(seed), func(h *history.History) bool {
		found, err := try(ctx, h)
		if found != nil && found.Kind == fault.Kind {
			fault = found
			return true
		}
		return err != nil && ctx.Err() == nil && fault.Kind == crashed
	}, func() bool { return ctx.Err() != nil })
	file = fmt.Sprintf("history-%d.yaml", seed)
	return file, len(h.Steps), history.Write(h, fault, file)
}
