package config

import (
	"fmt"
	"slices"
	"time"
	_ "time/tzdata" // for images without time zone data

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"berth.dev/berth/pkg/cost/price"
)

var (
	capacityTypes        = []string{"on-demand", "reserved", "spot"}
	spotPolicies         = []string{"avoid", "tolerate", "require"}
	unknownPricePolicies = []UnknownPricePolicy{UnknownPriceNeutral, UnknownPriceAvoid, UnknownPriceDefaultRates}
	fleetPolicies        = []FleetPolicy{FleetAutoscaled, FleetStatic}
)

const (
	maxPerThousandHours = 1_000_000     // once in 3.6 seconds
	maxLostMinutes      = 60 * 24 * 365 // a year
)

// CostOptimizedValues are the values of CostOptimizedArgs that are text in the configuration.
//
// +kubebuilder:object:generate=false
type CostOptimizedValues struct {
	Rates   price.Rates
	Prices  price.Table
	Windows []NamedWindow
}

// Validate checks defaulted args that stand at path in the configuration.
func (a *CostOptimizedArgs) Validate(path *field.Path) error {
	_, err := a.Values(path)
	return err
}

// Values returns the values of defaulted args that stand at path in the configuration, or all errors of the args.
func (a *CostOptimizedArgs) Values(path *field.Path) (*CostOptimizedValues, error) {
	const maxHostNeed = 1 << 40
	rates := path.Child("defaultRates")
	values := &CostOptimizedValues{}
	errs := slices.Concat(
		validateGPUNames(path, &a.GPUNames),
		validatePriceSignals(a.PriceSource, path.Child("priceSource")),
		readPrice(rates.Child("corePerHour"), *a.DefaultRates.CorePerHour, &values.Rates.Core),
		readPrice(rates.Child("memoryGiBPerHour"), *a.DefaultRates.MemoryGiBPerHour, &values.Rates.MemoryGiB),
		readPrice(rates.Child("gpuPerHour"), *a.DefaultRates.GPUPerHour, &values.Rates.GPU),
		validateEnum(path.Child("unknownPrice"), *a.UnknownPrice, unknownPricePolicies),
		validateEnum(path.Child("spot"), *a.Spot, spotPolicies),
		validateEnum(path.Child("fleet"), *a.Fleet, fleetPolicies),
		validateRange(path.Child("thetaPercent"), a.ThetaPercent, 0, 100),
		validateRange(path.Child("growthPercent"), a.GrowthPercent, 0, 1000),
		validateRange(path.Child("gpuHost", "milliCPU"), a.GPUHost.MilliCPU, 0, maxHostNeed),
		validateRange(path.Child("gpuHost", "memoryMiB"), a.GPUHost.MemoryMiB, 0, maxHostNeed),
		validateRange(path.Child("candidates"), a.Candidates, 0, maxCandidates),
	)
	rules := make([]price.Rule, len(a.Prices))
	for i := range a.Prices {
		errs = append(errs, readNodePrice(path.Child("prices").Index(i), &a.Prices[i], &rules[i])...)
	}
	values.Prices = price.NewTable(rules)
	var windowErrs field.ErrorList
	values.Windows, windowErrs = readWindows(path.Child("windows"), a.Windows)
	return values, slices.Concat(errs, validateCapacityTypes(path.Child("capacityTypes"), a.CapacityTypes),
		validateInterruptions(path.Child("interruptions"), a.Interruptions), windowErrs).ToAggregate()
}

func validateCapacityTypes(path *field.Path, rules []CapacityTypeRule) field.ErrorList {
	var errs field.ErrorList
	for i, r := range rules {
		at := path.Index(i)
		errs = append(errs, metav1validation.ValidateLabelName(r.Label, at.Child("label"))...)
		errs = append(errs, validateEnum(at.Child("type"), r.Type, capacityTypes)...)
		for j, part := range r.Contains {
			if part == "" {
				errs = append(errs, field.Invalid(at.Child("contains").Index(j), part,
					"want a part of a label value, such as spot"))
			}
		}
	}
	return errs
}

func validateInterruptions(path *field.Path, risks []InterruptionRisk) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, r := range risks {
		at := path.Index(i)
		errs = append(errs, validateEnum(at.Child("capacityType"), r.CapacityType, capacityTypes)...)
		if seen[r.CapacityType] {
			errs = append(errs, field.Duplicate(at.Child("capacityType"), r.CapacityType))
		}
		seen[r.CapacityType] = true
		errs = append(errs, validateRange(at.Child("perThousandHours"), &r.PerThousandHours, 0, maxPerThousandHours)...)
		errs = append(errs, validateRange(at.Child("lostMinutes"), &r.LostMinutes, 0, maxLostMinutes)...)
	}
	return errs
}

func readNodePrice(path *field.Path, p *NodePrice, rule *price.Rule) field.ErrorList {
	selector, errs := nodeSelector(path.Child("requirements"), p.Requirements)
	rule.Matches, rule.Weight = func(l map[string]string) bool { return selector.Matches(labels.Set(l)) }, *p.Weight
	return append(errs, readPrice(path.Child("pricePerHour"), p.PricePerHour, &rule.Price)...)
}

func readPrice(path *field.Path, text string, into *price.MicroDollars) field.ErrorList {
	p, err := price.Parse(text)
	if err != nil {
		return field.ErrorList{field.Invalid(path, text, "want "+price.Allowed)}
	}
	*into = p
	return nil
}

// nodeOperators names the operators of node requirements as label selectors know them.
var nodeOperators = map[corev1.NodeSelectorOperator]selection.Operator{
	corev1.NodeSelectorOpIn:           selection.In,
	corev1.NodeSelectorOpNotIn:        selection.NotIn,
	corev1.NodeSelectorOpExists:       selection.Exists,
	corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
	corev1.NodeSelectorOpGt:           selection.GreaterThan,
	corev1.NodeSelectorOpLt:           selection.LessThan,
}

// nodeSelector makes a selector of nodes from requirements that stand at path. At least one is required: to select
// every node, use a label that every node has.
func nodeSelector(path *field.Path, requirements []corev1.NodeSelectorRequirement) (labels.Selector, field.ErrorList) {
	if len(requirements) == 0 {
		return labels.Nothing(), field.ErrorList{field.Required(path,
			`at least one requirement, such as {key: kubernetes.io/os, operator: Exists}`)}
	}
	var errs field.ErrorList
	selector := labels.NewSelector()
	for i, r := range requirements {
		at := path.Index(i)
		operator, ok := nodeOperators[r.Operator]
		if !ok {
			errs = append(errs, field.NotSupported(at.Child("operator"), r.Operator, []corev1.NodeSelectorOperator{
				corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists,
				corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt,
			}))
			continue
		}
		requirement, err := labels.NewRequirement(r.Key, operator, r.Values)
		if err != nil {
			errs = append(errs, field.Invalid(at, r.Key, err.Error()))
			continue
		}
		selector = selector.Add(*requirement)
	}
	return selector, errs
}

// weekdayNames by time.Weekday.
var weekdayNames = []string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}

// NamedWindow is a price window, with the pods that wait for it without naming it.
//
// +kubebuilder:object:generate=false
type NamedWindow struct {
	Name     string
	Window   *price.Window
	Selector labels.Selector
}

func readWindows(path *field.Path, windows []PriceWindow) ([]NamedWindow, field.ErrorList) {
	var errs field.ErrorList
	read := make([]NamedWindow, len(windows))
	seen := map[string]bool{}
	for i := range windows {
		at, name := path.Index(i), windows[i].Name
		for _, wrong := range validation.IsDNS1123Label(name) {
			errs = append(errs, field.Invalid(at.Child("name"), name, wrong))
		}
		if seen[name] {
			errs = append(errs, field.Duplicate(at.Child("name"), name))
		}
		seen[name] = true
		window, windowErrs := readWindow(at, &windows[i])
		selector, selectorErrs := readPodSelector(at.Child("podSelector"), windows[i].PodSelector)
		errs = append(append(errs, windowErrs...), selectorErrs...)
		read[i] = NamedWindow{Name: name, Window: window, Selector: selector}
	}
	return read, errs
}

// readPodSelector returns a selector that selects nothing if s is nil.
func readPodSelector(path *field.Path, s *metav1.LabelSelector) (labels.Selector, field.ErrorList) {
	if s == nil {
		return labels.Nothing(), nil
	}
	errs := metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, path)
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		errs = append(errs, field.Required(path, "an empty selector would hold back every pod"))
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil && len(errs) == 0 {
		errs = append(errs, field.Invalid(path, s, err.Error()))
	}
	return selector, errs
}

// readWindow reads the hours of a window that stands at path.
func readWindow(path *field.Path, w *PriceWindow) (*price.Window, field.ErrorList) {
	var errs field.ErrorList
	// Local would differ between machines.
	place, err := time.LoadLocation(*w.TimeZone)
	if err != nil || *w.TimeZone == "" || *w.TimeZone == "Local" {
		errs = append(errs, field.Invalid(path.Child("timeZone"), *w.TimeZone,
			"want the name of a time zone such as UTC or Europe/Berlin"))
	}
	from, err := price.ParseClock(w.From)
	if err != nil {
		errs = append(errs, field.Invalid(path.Child("from"), w.From, "want "+price.AllowedClock))
	}
	to, err := price.ParseClock(w.To)
	if err != nil {
		errs = append(errs, field.Invalid(path.Child("to"), w.To, "want "+price.AllowedClock))
	}
	var days []time.Weekday
	for i, name := range w.Days {
		day := slices.Index(weekdayNames, name)
		if day < 0 {
			errs = append(errs, field.NotSupported(path.Child("days").Index(i), name, weekdayNames))
			continue
		}
		days = append(days, time.Weekday(day))
	}
	if len(errs) > 0 {
		return nil, errs
	}
	window, err := price.NewWindow(days, from, to, place)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, fmt.Sprintf("%s-%s", w.From, w.To), err.Error())}
	}
	return window, nil
}
