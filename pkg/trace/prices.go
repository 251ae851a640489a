package trace

import (
	"errors"
	"fmt"
	"io"
	"math/big"
)

// Prices are rates from which the price of a node without one of its own is made.
type Prices struct {
	// PerGPU is the rate of one GPU of a model, and the others of one CPU core and one GiB of memory, in micro-dollars an
	// hour.
	PerGPU          map[string]int64
	PerCore, PerGiB int64
}

var priceColumns = []string{"resource", "dollars_per_hour"}

// ReadPrices reads a table of rates: a CSV file with the columns resource,dollars_per_hour. resource is the name of a GPU
// model, or cpu-core, or memory-gib.
func ReadPrices(r io.Reader, file string) (*Prices, error) {
	t, err := openTable(r, file)
	if err != nil {
		return nil, err
	}
	if err := t.require(priceColumns, nil); err != nil {
		return nil, err
	}
	prices := &Prices{PerGPU: map[string]int64{}}
	seen := map[string]bool{}
	for {
		row, err := t.next()
		if err != nil {
			return nil, err
		}
		if row == nil {
			return prices, nil
		}
		resource, rate := row.label("resource"), row.microDollars("dollars_per_hour")
		switch {
		case resource == "":
			row.fail("resource", "", "a GPU model, cpu-core or memory-gib")
		case row.text("dollars_per_hour") == "":
			row.fail("dollars_per_hour", "", "decimal dollars")
		case seen[resource]:
			row.fail("resource", resource, "each resource once")
		}
		if row.err != nil {
			return nil, row.err
		}
		seen[resource] = true
		switch resource {
		case "cpu-core":
			prices.PerCore = rate
		case "memory-gib":
			prices.PerGiB = rate
		default:
			prices.PerGPU[resource] = rate
		}
	}
}

// Apply prices the nodes that have no price. It fails on a GPU model without a rate.
func (p *Prices) Apply(nodes []Node) error {
	for i := range nodes {
		n := &nodes[i]
		if n.MicroDollarsPerHour != 0 {
			continue
		}
		rate, err := p.GPURate(n.Name, n.Model, n.GPUs)
		if err != nil {
			return err
		}
		n.MicroDollarsPerHour = int64(n.GPUs)*rate + n.CPUMilli*p.PerCore/1000 + n.MemoryMiB*p.PerGiB/1024
	}
	return nil
}

// GPURate is the rate of one GPU of a node that has so many. It fails for a model without one, which would be worth nothing.
func (p *Prices) GPURate(node, model string, gpus int) (int64, error) {
	rate, ok := p.PerGPU[model]
	if gpus > 0 && !ok {
		return 0, fmt.Errorf("pricing node %s: the price table has no rate for GPU model %q", node, model)
	}
	return rate, nil
}

// parseMicroDollars reads decimal dollars exactly; digits beyond the sixth are rounded.
func parseMicroDollars(value string) (int64, error) {
	want := errors.New("decimal dollars from 0 to 1000000, such as 3.06")
	if len(value) > 20 {
		return 0, want
	}
	for _, c := range []byte(value) {
		if (c < '0' || c > '9') && c != '.' {
			return 0, want
		}
	}
	dollars, ok := new(big.Rat).SetString(value)
	if !ok || dollars.Cmp(big.NewRat(1_000_000, 1)) > 0 {
		return 0, want
	}
	micro, ok := new(big.Int).SetString(dollars.Mul(dollars, big.NewRat(1_000_000, 1)).FloatString(0), 10)
	if !ok {
		return 0, want
	}
	return micro.Int64(), nil
}
