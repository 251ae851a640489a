package nodeagent

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/nodeagent/nvidiasmi"
)

// SurveyCommands is how many commands of nvidia-smi one reading of the machine takes at most: the list of GPUs, twice
// more in the forms for older drivers, the slices, the minor numbers and the links.
const SurveyCommands = 6

// survey reads a machine.
type survey struct {
	machine Machine
	pairs   rarely[[]nvidiasmi.Pair]
	minors  rarely[map[string]int]
}

func newSurvey(machine Machine) *survey {
	return &survey{
		machine: machine,
		pairs:   rarely[[]nvidiasmi.Pair]{what: "links among the GPUs, which are not published without"},
		minors:  rarely[map[string]int]{what: "minor numbers of the GPUs, without which devices named by them are unknown"},
	}
}

func (s *survey) read(ctx context.Context) (hardware, error) {
	gpus, err := s.machine.GPUs(ctx)
	if err != nil {
		return hardware{}, err
	}
	h := hardware{gpus: gpus}
	if h.sliced() {
		if h.slices, err = s.machine.Slices(ctx); err != nil {
			return hardware{}, err
		}
	}
	if len(gpus) == 0 {
		return h, nil
	}
	// What cannot be read of these two is left out; the rest is true all the same.
	h.minors = s.minors.get(ctx, h.uuids(), s.machine.Minors)
	if len(gpus) > 1 {
		h.pairs = s.pairs.get(ctx, h.uuids(), func(ctx context.Context) ([]nvidiasmi.Pair, error) {
			pairs, err := s.machine.Topology(ctx)
			if err == nil && !covers(pairs, &h) {
				err = errors.New("the answer is not about the GPUs that are listed")
			}
			return pairs, err
		})
	}
	return h, nil
}

// The pauses between two attempts at what cannot be read grow to the longest.
const firstSurveyPause, longestSurveyPause = time.Minute, time.Hour

// rarely is a value that is read only when there are other GPUs than before: the answer wakes every GPU.
type rarely[T any] struct {
	// what names the value and says what is done without it.
	what string
	// of names the GPUs to which the value belongs.
	of    string
	value T
	known bool
	// failed is the last error, next the time of the next attempt, pause the time until the one after it.
	failed string
	next   time.Time
	pause  time.Duration
}

// get returns the value for the GPUs of that name, a zero value where it cannot be read.
func (r *rarely[T]) get(ctx context.Context, gpus string, read func(context.Context) (T, error)) T {
	if r.of != gpus {
		*r = rarely[T]{what: r.what, of: gpus, failed: r.failed}
	}
	if r.known || time.Now().Before(r.next) {
		return r.value
	}
	logger := klog.FromContext(ctx)
	value, err := read(ctx)
	if err != nil {
		r.pause = min(max(firstSurveyPause, 2*r.pause), longestSurveyPause)
		r.next = time.Now().Add(r.pause)
		if text := err.Error(); r.failed != text {
			r.failed = text
			logger.Error(err, "Reading failed; will try again less and less often", "what", r.what)
		}
		return r.value
	}
	if r.failed != "" {
		logger.Info("Reading again", "what", r.what)
	}
	r.value, r.known, r.failed = value, true, ""
	return r.value
}

// covers reports whether the pairs are those of the machine's GPUs.
func covers(pairs []nvidiasmi.Pair, h *hardware) bool {
	known := map[int]bool{}
	for _, gpu := range h.gpus {
		known[gpu.Index] = true
	}
	for _, pair := range pairs {
		if !known[pair.A] || !known[pair.B] {
			return false
		}
	}
	return len(pairs) == len(h.gpus)*(len(h.gpus)-1)/2
}
