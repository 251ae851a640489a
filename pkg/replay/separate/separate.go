// Package separate runs replays in processes of their own, so that several run at once and each is charged for its own
// processor time: one that has a processor to itself needs a third less of it than one that spreads its work over two.
package separate

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

	"berth.dev/berth/pkg/command"
	"berth.dev/berth/pkg/progress"
	"berth.dev/berth/pkg/replay/replayed"
)

// line is what the process of a replay writes: how far it is and, in the last one, what came of it.
type line struct {
	Offered, Total int64
	Result         *replayed.Result `json:",omitempty"`
	// What is no part of a result that users get.
	Timing replayed.Timing
	Starts map[string]float64 `json:",omitempty"`
	Stays  []replayed.Stay    `json:",omitempty"`
}

const every = 500 * time.Millisecond

// Follow writes, in the process of a replay, how far it is, until the function that it returns is called.
func Follow(out io.Writer, p *replayed.Progress) (stop func()) {
	lines := json.NewEncoder(out)
	return progress.Every(every, func() {
		offered, total := p.Read()
		_ = lines.Encode(line{Offered: offered, Total: total}) // a reader that is gone ends the process by a signal
	})
}

// Finish writes what came of a replay.
func Finish(out io.Writer, result *replayed.Result) error {
	last := line{Offered: int64(result.Pods), Total: int64(result.Pods), Result: result, Timing: result.Timing,
		Starts: result.Starts, Stays: result.Stays}
	if err := json.NewEncoder(out).Encode(last); err != nil {
		return fmt.Errorf("handing over the result: %w", err)
	}
	return nil
}

// Pool runs replays, a number of them at once.
type Pool struct {
	// Executable runs a replay with the arguments that Run is given, and writes what Follow and Finish write.
	Executable string
	AtOnce     int
	// Memory is what the replays that run at once keep to, as long as they can, in bytes.
	Memory int64
	// Progress is told how far all are.
	Progress *replayed.Progress

	mu             sync.Mutex
	offered, total []int64
}

// Run runs a replay with each of the arguments and returns their results in order. The first error ends all; it has the
// exit status of the replay that failed.
func (p *Pool) Run(ctx context.Context, arguments [][]string) ([]*replayed.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.offered, p.total = make([]int64, len(arguments)), make([]int64, len(arguments))
	results := make([]*replayed.Result, len(arguments))
	next := make(chan int)
	var workers sync.WaitGroup
	for range p.AtOnce {
		workers.Go(func() {
			for i := range next {
				result, err := p.one(ctx, arguments[i], i)
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
func (p *Pool) one(ctx context.Context, arguments []string, i int) (*replayed.Result, error) {
	cmd := exec.CommandContext(ctx, p.Executable, arguments...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(max(1, runtime.NumCPU()/p.AtOnce)), "GOMEMLIMIT="+
		strconv.FormatInt(p.Memory/int64(p.AtOnce), 10))
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("starting a replay: %w", err)
	}
	var last line
	lines := json.NewDecoder(out)
	for err == nil && last.Result == nil {
		if err = lines.Decode(&last); err == nil {
			p.advance(i, last.Offered, last.Total)
		}
	}
	if waited := cmd.Wait(); waited != nil {
		return nil, failure(waited, said.String())
	}
	if err != nil {
		return nil, fmt.Errorf("reading the result of a replay: %w", err)
	}
	last.Result.Timing, last.Result.Starts, last.Result.Stays = last.Timing, last.Starts, last.Stays
	return last.Result, nil
}

// failure is what the process said of its end, with its exit status if it has one.
func failure(err error, said string) error {
	var exit *exec.ExitError
	_, text, found := strings.Cut(strings.TrimSpace(said), ": ")
	if !errors.As(err, &exit) || !found || exit.ExitCode() < 0 {
		return fmt.Errorf("running a replay: %w", err)
	}
	return command.WithStatus(errors.New(text), exit.ExitCode())
}

// advance adds up how far all are. All have as many pods as the one that is known to have the most.
func (p *Pool) advance(i int, offered, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.offered[i], p.total[i] = offered, total
	sum, most := int64(0), int64(0)
	for i := range p.offered {
		sum += p.offered[i]
		most = max(most, p.total[i])
	}
	p.Progress.Set(sum, most*int64(len(p.total)))
}
