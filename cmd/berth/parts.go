package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"berth.dev/berth/pkg/replay"
	"berth.dev/berth/pkg/schedulerconfig"
)

// A comparison's replays run in processes of their own, so that several run at once and each is charged for its own processor
// time: one that has a processor to itself needs a third less of it than one that spreads its work over two.

// asPart is the hidden flag with which a comparison runs a replay.
const asPart = "as-part"

// part is a line that such a replay writes: how far it is and, in the last one, what came of it.
type part struct {
	Offered, Total int64
	Result         *replay.Result `json:",omitempty"`
	Timing         replay.Timing
}

const partEvery = 500 * time.Millisecond

// runPart runs a replay and writes its lines.
func runPart(ctx context.Context, c *schedulerconfig.Configuration, in replay.Input, options replay.Options, out io.Writer) error {
	lines := json.NewEncoder(out)
	result, err := runReplay(ctx, c, in, options, func(p *replay.Progress) func() {
		return every(partEvery, func() {
			offered, total := p.Read()
			_ = lines.Encode(part{Offered: offered, Total: total}) // a reader that is gone ends the process by a signal
		})
	})
	if err != nil {
		return err
	}
	if err := lines.Encode(part{Offered: int64(result.Pods), Total: int64(result.Pods), Result: result, Timing: result.Timing}); err != nil {
		return fmt.Errorf("handing over the result: %w", err)
	}
	return nil
}

// every calls f again and again until the function that it returns is called.
func every(interval time.Duration, f func()) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				f()
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// parts runs replays with the given arguments, so many at once, and returns their results in order. The first error ends all.
type parts struct {
	atOnce   int
	progress *replay.Progress

	mu             sync.Mutex
	offered, total []int64
}

func (p *parts) run(ctx context.Context, arguments [][]string) ([]*replay.Result, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this executable: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.offered, p.total = make([]int64, len(arguments)), make([]int64, len(arguments))
	results := make([]*replay.Result, len(arguments))
	next := make(chan int)
	var workers sync.WaitGroup
	for range p.atOnce {
		workers.Go(func() {
			for i := range next {
				result, err := p.one(ctx, executable, arguments[i], i)
				if err != nil {
					cancel(err)
				}
				results[i] = result
			}
		})
	}
	for i := range arguments {
		if ctx.Err() == nil {
			next <- i
		}
	}
	close(next)
	workers.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return results, nil
}

// one runs replay number i in a process that has its share of processors and memory.
func (p *parts) one(ctx context.Context, executable string, arguments []string, i int) (*replay.Result, error) {
	cmd := exec.CommandContext(ctx, executable, arguments...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(max(1, runtime.NumCPU()/p.atOnce)), "GOMEMLIMIT="+strconv.Itoa(memoryLimit/p.atOnce))
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("starting a replay: %w", err)
	}
	var last part
	lines := json.NewDecoder(out)
	for err == nil && last.Result == nil {
		if err = lines.Decode(&last); err == nil {
			p.advance(i, last.Offered, last.Total)
		}
	}
	if waited := cmd.Wait(); waited != nil {
		return nil, partError(waited, said.String())
	}
	if err != nil {
		return nil, fmt.Errorf("reading the result of a replay: %w", err)
	}
	last.Result.Timing = last.Timing
	return last.Result, nil
}

// partError is what the process said of its end, with its exit status.
func partError(err error, said string) error {
	var exit *exec.ExitError
	text := strings.TrimPrefix(strings.TrimSpace(said), "berth: ")
	if !errors.As(err, &exit) || text == "" {
		return fmt.Errorf("running a replay: %w", err)
	}
	return statusError{error: errors.New(text), status: exit.ExitCode()}
}

// advance adds up how far all are. All have as many pods as the one that is known to have the most.
func (p *parts) advance(i int, offered, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.offered[i], p.total[i] = offered, total
	sum, most := int64(0), int64(0)
	for i := range p.offered {
		sum += p.offered[i]
		most = max(most, p.total[i])
	}
	p.progress.Set(sum, most*int64(len(p.total)))
}

// partArguments are those of `berth replay` for one replay of a comparison: the flags about the input that were given, the
// configuration and the seed.
func partArguments(given *pflag.FlagSet, configuration string, seed int) []string {
	arguments := []string{"replay", "--" + asPart, "--config=" + configuration, "--seed=" + strconv.Itoa(seed)}
	var in replayInput
	about := &cobra.Command{}
	in.addFlags(about)
	given.Visit(func(f *pflag.Flag) {
		if about.Flags().Lookup(f.Name) != nil {
			arguments = append(arguments, "--"+f.Name+"="+f.Value.String())
		}
	})
	return arguments
}
