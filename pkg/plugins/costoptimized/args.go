package costoptimized

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/pkg/price"
	"berth.dev/berth/pkg/priceview"
)

// settings are the plugin's args as domain values.
type settings struct {
	table         *price.Table
	rates         price.Rates
	unknownPrice  config.UnknownPricePolicy
	spot          priceview.SpotPolicy
	capacityRules priceview.CapacityRules
	interruptions map[priceview.CapacityType]price.Interruption
	policy        price.Policy
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
	args, ok := obj.(*config.CostOptimizedArgs)
	if !ok {
		return nil, fmt.Errorf("reading args of profile %s: want CostOptimizedArgs, got %T", profile, obj)
	}
	path := field.NewPath("profiles").Key(profile).Child("pluginConfig").Key(Name).Child("args")
	if err := config.ValidateCostOptimizedArgs(path, args); err != nil {
		return nil, err
	}
	s := &settings{
		unknownPrice:  *args.UnknownPrice,
		spot:          priceview.SpotPolicy(*args.Spot),
		capacityRules: CapacityRules(args),
		interruptions: map[priceview.CapacityType]price.Interruption{},
		policy:        price.Policy{SharePermille: 10 * int64(*args.ThetaPercent)},
		static:        *args.Fleet == config.FleetStatic,
		hostNeed:      price.HostNeed{MilliCPU: *args.GPUHost.MilliCPU, MemoryMiB: *args.GPUHost.MemoryMiB},
		gpuKeys:       gpuview.Keys{GPUNames: args.Names()},
		growthPercent: int64(*args.GrowthPercent),
		priceSource:   args.PriceSource,
		candidates:    int(*args.Candidates),
	}
	var err error
	if s.rates, err = readRates(args.DefaultRates); err != nil {
		return nil, err
	}
	if s.table, err = readPrices(path.Child("prices"), args.Prices); err != nil {
		return nil, err
	}
	if s.hours, err = readWindows(path.Child("windows"), args.Windows); err != nil {
		return nil, err
	}
	for _, r := range args.Interruptions {
		s.interruptions[priceview.CapacityType(r.CapacityType)] =
			price.Interruption{PerThousandHours: int64(r.PerThousandHours), LostMinutes: int64(r.LostMinutes)}
	}
	return s, nil
}

func readRates(r *config.ResourceRates) (rates price.Rates, err error) {
	if rates.Core, err = price.Parse(*r.CorePerHour); err != nil {
		return rates, err
	}
	if rates.MemoryGiB, err = price.Parse(*r.MemoryGiBPerHour); err != nil {
		return rates, err
	}
	rates.GPU, err = price.Parse(*r.GPUPerHour)
	return rates, err
}

func readPrices(path *field.Path, entries []config.NodePrice) (*price.Table, error) {
	rules := make([]price.Rule, 0, len(entries))
	for i, e := range entries {
		selector, errs := config.NodeSelector(path.Index(i).Child("requirements"), e.Requirements)
		if len(errs) > 0 {
			return nil, errs.ToAggregate()
		}
		rule := price.Rule{Matches: func(l map[string]string) bool { return selector.Matches(labels.Set(l)) }, Weight: *e.Weight}
		if e.PricePerHour != nil {
			p, err := price.Parse(*e.PricePerHour)
			if err != nil {
				return nil, err
			}
			rule.Price = &p
		} else {
			var err error
			if rule.Adjustment, err = price.ParseAdjustment(*e.PriceAdjustment); err != nil {
				return nil, err
			}
		}
		rules = append(rules, rule)
	}
	return price.NewTable(rules), nil
}
