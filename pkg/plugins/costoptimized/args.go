package costoptimized

import (
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/gpu/gpuview"
)

// settings are the plugin's args as domain values.
type settings struct {
	prices        price.Sources
	unknownPrice  config.UnknownPricePolicy
	spot          priceview.SpotPolicy
	capacityRules priceview.CapacityRules
	interruptions map[priceview.CapacityType]price.Interruption
	// sharePermille is θ, see price.Placement.Cost.
	sharePermille int64
	// static says that empty nodes are paid for all the same.
	static   bool
	hostNeed price.HostNeed
	gpuKeys  gpuview.Keys
	// growthPercent is how many more pods are expected soon, in percent of those that run.
	growthPercent int64
	// priceSource tells where to read prices, nil for nowhere.
	priceSource *config.PriceSignals
	hours       hours
	// candidates is how many nodes the framework is to look at, 0 for all.
	candidates int
}

// CapacityRules are the rules by which labels say how a node was bought: those of the args, else the built-in ones.
func CapacityRules(args *config.CostOptimizedArgs) priceview.CapacityRules {
	if len(args.CapacityTypes) == 0 {
		return priceview.DefaultCapacityRules()
	}
	var rules priceview.CapacityRules
	for _, r := range args.CapacityTypes {
		rules = append(rules,
			priceview.CapacityRule{Label: r.Label, Values: r.Values, Contains: r.Contains, Type: priceview.CapacityType(r.Type)})
	}
	return rules
}

// readArgs checks and converts the plugin's args of one profile.
func readArgs(obj runtime.Object, profile string) (*settings, error) {
	args, err := config.Checked[*config.CostOptimizedArgs](obj, profile, Name)
	if err != nil {
		return nil, err
	}
	values, err := args.Values(nil)
	if err != nil {
		return nil, err
	}
	s := &settings{
		prices: price.Sources{
			Table: values.Prices, Rates: values.Rates, Estimates: *args.UnknownPrice == config.UnknownPriceDefaultRates,
		},
		hours:         values.Windows,
		unknownPrice:  *args.UnknownPrice,
		spot:          priceview.SpotPolicy(*args.Spot),
		capacityRules: CapacityRules(args),
		interruptions: map[priceview.CapacityType]price.Interruption{},
		sharePermille: 10 * int64(*args.ThetaPercent),
		static:        *args.Fleet == config.FleetStatic,
		hostNeed:      price.HostNeed{MilliCPU: *args.GPUHost.MilliCPU, MemoryMiB: *args.GPUHost.MemoryMiB},
		gpuKeys:       gpuview.Keys{GPUNames: args.GPUNames},
		growthPercent: int64(*args.GrowthPercent),
		priceSource:   args.PriceSource,
		candidates:    int(*args.Candidates),
	}
	for _, r := range args.Interruptions {
		s.interruptions[priceview.CapacityType(r.CapacityType)] =
			price.Interruption{PerThousandHours: int64(r.PerThousandHours), LostMinutes: int64(r.LostMinutes)}
	}
	return s, nil
}
