package trace

import (
	"io"

	"berth.dev/berth/pkg/cost/price"
)

var priceColumns = []string{"resource", "dollars_per_hour"}

// ReadPrices reads a table of rates: a CSV file with the columns resource,dollars_per_hour. resource is the name of a
// GPU model, or cpu-core, or memory-gib.
func ReadPrices(r io.Reader, file string) (*price.ModelRates, error) {
	t, err := openTable(r, file)
	if err != nil {
		return nil, err
	}
	if err := t.require(priceColumns, nil); err != nil {
		return nil, err
	}
	rates := &price.ModelRates{GPU: map[string]price.MicroDollars{}}
	seen := map[string]bool{}
	return rates, t.each(func(row *row) {
		resource, rate := row.label("resource"), row.dollarsPerHour()
		switch {
		case resource == "":
			row.fail("resource", "", "a GPU model, cpu-core or memory-gib")
		case row.text("dollars_per_hour") == "":
			row.fail("dollars_per_hour", "", "decimal dollars")
		case seen[resource]:
			row.fail("resource", resource, "each resource once")
		}
		seen[resource] = true
		switch resource {
		case "cpu-core":
			rates.Core = rate
		case "memory-gib":
			rates.MemoryGiB = rate
		default:
			rates.GPU[resource] = rate
		}
	})
}
