package price

import "fmt"

// ModelRates are what the resources of a node cost an hour, GPUs by model.
type ModelRates struct {
	Core      MicroDollars // one CPU core
	MemoryGiB MicroDollars
	GPU       map[string]MicroDollars
}

// Price returns what a node costs. It fails for GPUs of a model without a rate, which would be worth nothing.
func (r *ModelRates) Price(node, model string, c Capacity) (MicroDollars, error) {
	rate, ok := r.GPU[model]
	if c.MilliGPU > 0 && !ok {
		return 0, fmt.Errorf("pricing node %s: the price table has no rate for GPU model %q", node, model)
	}
	return Rates{Core: r.Core, MemoryGiB: r.MemoryGiB, GPU: rate}.Price(c), nil
}
