package costoptimized

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/gpu/gpuview"
)

// settings are the plugin's args in one profile.
type settings struct {
	args *config.CostOptimizedArgs
	// values are those of the args that are text.
	values        *config.CostOptimizedValues
	capacityRules priceview.CapacityRules
	gpuKeys       gpuview.Keys
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
	return &settings{
		args: args, values: values, capacityRules: CapacityRules(args), gpuKeys: gpuview.Keys{GPUNames: args.GPUNames},
	}, nil
}

// given returns the price that is set for a node: on the node, if it states one, or in the table.
func (s *settings) given(node *v1.Node) (price.MicroDollars, bool) {
	if stated, ok, _ := priceview.StatedPrice(node); ok {
		return stated, true
	}
	return s.values.Prices.Price(node.Labels)
}

// found returns the price of a node for which none is given: that of metrics, 0 if unknown, else that of the capacity
// at the default rates.
func (s *settings) found(metered price.MicroDollars, c price.Capacity) (price.MicroDollars, bool) {
	switch {
	case metered > 0:
		return metered, true
	case *s.args.UnknownPrice == config.UnknownPriceDefaultRates:
		return s.values.Rates.Price(c), true
	}
	return 0, false
}

// risk returns that of a type of capacity. Types that are not listed are never taken away.
func (s *settings) risk(of priceview.CapacityType) price.Interruption {
	for _, r := range s.args.Interruptions {
		if r.CapacityType == string(of) {
			return price.Interruption{PerThousandHours: int64(r.PerThousandHours), LostMinutes: int64(r.LostMinutes)}
		}
	}
	return price.Interruption{}
}

// GivenPrices returns what nodes cost as they themselves say or the args of a profile, without metrics, and the rates
// by which a price is divided over resources.
func GivenPrices(args *config.CostOptimizedArgs, profile string) (func(*v1.Node) (price.MicroDollars, bool),
	price.Rates, error) {
	s, err := readArgs(args, profile)
	if err != nil {
		return nil, price.Rates{}, err
	}
	return func(node *v1.Node) (price.MicroDollars, bool) {
		if p, ok := s.given(node); ok {
			return p, true
		}
		return s.found(0, priceview.ReadNode(&s.gpuKeys, node).Allocatable)
	}, s.values.Rates, nil
}
