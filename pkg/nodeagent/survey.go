package nodeagent

import (
	"context"

	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/nodeagent/nvidiasmi"
)

// survey reads a machine. How GPUs are connected is asked only when there are others than before: the answer wakes every
// GPU.
type survey struct {
	machine Machine
	// of names the GPUs to which pairs belong.
	of    string
	pairs []nvidiasmi.Pair
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
	if len(gpus) < 2 {
		return h, nil
	}
	if uuids := h.uuids(); s.pairs == nil || s.of != uuids {
		pairs, err := s.machine.Topology(ctx)
		if err != nil {
			// The rest is true all the same.
			klog.FromContext(ctx).Error(err, "Reading the links among the GPUs failed; they are not published")
			return h, nil
		}
		if !covers(pairs, &h) {
			klog.FromContext(ctx).Error(nil, "The links are not those of the GPUs that are listed; they are not published",
				"gpus", len(gpus), "pairs", len(pairs))
			return h, nil
		}
		s.of, s.pairs = uuids, pairs
	}
	h.pairs = s.pairs
	return h, nil
}

// covers reports whether the pairs are those of the machine's GPUs.
func covers(pairs []nvidiasmi.Pair, h *hardware) bool {
	known := newIdentifier(h.gpus, nil).indices
	for _, pair := range pairs {
		if !known[pair.A] || !known[pair.B] {
			return false
		}
	}
	return len(pairs) == len(h.gpus)*(len(h.gpus)-1)/2
}
