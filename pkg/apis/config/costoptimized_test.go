package config

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"berth.dev/berth/test/harness/assert"
)

func TestValidateCostOptimizedArgs(t *testing.T) {
	t.Parallel()
	everyNode := []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/os", Operator: corev1.NodeSelectorOpExists}}
	entry := func(change func(*NodePrice)) func(*CostOptimizedArgs) {
		return func(a *CostOptimizedArgs) {
			p := NodePrice{Requirements: everyNode, PricePerHour: "3.06"}
			change(&p)
			a.Prices = []NodePrice{{Requirements: everyNode, PricePerHour: "1", Weight: new(int32(-5))}, p}
		}
	}
	requirement := func(r corev1.NodeSelectorRequirement) func(*CostOptimizedArgs) {
		return entry(func(p *NodePrice) { p.Requirements = []corev1.NodeSelectorRequirement{r} })
	}
	hours := func(change func(*PriceWindow)) func(*CostOptimizedArgs) {
		return func(a *CostOptimizedArgs) {
			w := PriceWindow{Name: "weekend", Days: []string{"Sat", "Sun"}, From: "00:00", To: "24:00",
				TimeZone:    new("Europe/Berlin"),
				PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"patience": "days"}}}
			change(&w)
			a.Windows = []PriceWindow{{Name: "night", From: "22:00", To: "06:00"}, w}
		}
	}
	for name, tc := range map[string]struct {
		change func(*CostOptimizedArgs)
		want   []string // parts of the error; none for no error
	}{
		"defaults alone": {func(*CostOptimizedArgs) {}, nil},
		"prices":         {entry(func(*NodePrice) {}), nil},
		"a requirement that compares numbers": {requirement(corev1.NodeSelectorRequirement{Key: "nvidia.com/gpu.memory",
			Operator: corev1.NodeSelectorOpGt, Values: []string{"40000"}}), nil},
		"a currency sign": {entry(func(p *NodePrice) { p.PricePerHour = "$3" }), []string{"args.prices[1].pricePerHour", `"$3"`, "decimal"}},
		"a negative price": {entry(func(p *NodePrice) { p.PricePerHour = "-3" }),
			[]string{"args.prices[1].pricePerHour"}},
		"a price beyond all measure": {entry(func(p *NodePrice) { p.PricePerHour = "1e30" }),
			[]string{"args.prices[1].pricePerHour"}},
		"an empty price": {entry(func(p *NodePrice) { p.PricePerHour = "" }),
			[]string{"args.prices[1].pricePerHour"}},
		"no requirement": {entry(func(p *NodePrice) { p.Requirements = nil }),
			[]string{"args.prices[1].requirements", "at least one"}},
		"an operator that does not exist": {requirement(corev1.NodeSelectorRequirement{Key: "a", Operator: "Like"}),
			[]string{"args.prices[1].requirements[0].operator", "Like", "NotIn"}},
		"a key that is none": {requirement(corev1.NodeSelectorRequirement{Key: "a b",
			Operator: corev1.NodeSelectorOpExists}), []string{"args.prices[1].requirements[0]", "a b"}},
		"an operator without its values": {requirement(corev1.NodeSelectorRequirement{Key: "a",
			Operator: corev1.NodeSelectorOpIn}), []string{"args.prices[1].requirements[0]"}},
		"a comparison with what is no number": {requirement(corev1.NodeSelectorRequirement{Key: "a",
			Operator: corev1.NodeSelectorOpGt, Values: []string{"x"}}), []string{"args.prices[1].requirements[0]"}},
		"a rate that is no price":                {func(a *CostOptimizedArgs) { *a.DefaultRates.GPUPerHour = "free" }, []string{"args.defaultRates.gpuPerHour", `"free"`}},
		"an unknown way to treat unknown prices": {func(a *CostOptimizedArgs) { *a.UnknownPrice = "neutral" }, []string{"args.unknownPrice", `"neutral"`, `"Neutral"`}},
		"an unknown stance to spot":              {func(a *CostOptimizedArgs) { *a.Spot = "maybe" }, []string{"args.spot", `"maybe"`, `"tolerate"`}},
		"an unknown kind of fleet":               {func(a *CostOptimizedArgs) { *a.Fleet = "" }, []string{"args.fleet", `"Static"`}},
		"theta above all": {func(a *CostOptimizedArgs) { *a.ThetaPercent = 101 },
			[]string{"args.thetaPercent", "101", "0 to 100"}},
		"windows":                 {hours(func(*PriceWindow) {}), nil},
		"a window without a name": {hours(func(w *PriceWindow) { w.Name = "" }), []string{"args.windows[1].name"}},
		"two windows of one name": {hours(func(w *PriceWindow) { w.Name = "night" }),
			[]string{"args.windows[1].name", "Duplicate"}},
		"an unknown time zone": {hours(func(w *PriceWindow) { w.TimeZone = new("Mars/Olympus") }),
			[]string{"args.windows[1].timeZone", "Mars/Olympus"}},
		"the machine's own time zone": {hours(func(w *PriceWindow) { w.TimeZone = new("Local") }),
			[]string{"args.windows[1].timeZone"}},
		"no time of day": {hours(func(w *PriceWindow) { w.From = "" }),
			[]string{"args.windows[1].from", "time of day"}},
		"a time of day that is none": {hours(func(w *PriceWindow) { w.To = "25:00" }), []string{"args.windows[1].to", `"25:00"`}},
		"a window that never opens": {hours(func(w *PriceWindow) { w.From, w.To = "06:00", "06:00" }),
			[]string{"args.windows[1]", "never opens"}},
		"a window on no day": {hours(func(w *PriceWindow) { w.Days = []string{} }),
			[]string{"args.windows[1]", "never opens"}},
		"a day that is none": {hours(func(w *PriceWindow) { w.Days = []string{"Mon", "Freitag"} }),
			[]string{"args.windows[1].days[1]", "Freitag", "Fri"}},
		"a selector of every pod": {hours(func(w *PriceWindow) { w.PodSelector = &metav1.LabelSelector{} }),
			[]string{"args.windows[1].podSelector", "every pod"}},
		"a selector that is none": {
			hours(func(w *PriceWindow) { w.PodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a b": ""}} }),
			[]string{"args.windows[1].podSelector"}},
		"growth beyond tenfold": {func(a *CostOptimizedArgs) { *a.GrowthPercent = 1001 },
			[]string{"args.growthPercent", "1001"}},
		"theta below nothing": {func(a *CostOptimizedArgs) { *a.ThetaPercent = -1 },
			[]string{"args.thetaPercent"}},
		"a capacity rule without a label": {
			func(a *CostOptimizedArgs) { a.CapacityTypes = []CapacityTypeRule{{Type: "spot"}} },
			[]string{"args.capacityTypes[0].label"}},
		"a capacity rule of an unknown type": {func(a *CostOptimizedArgs) { a.CapacityTypes = []CapacityTypeRule{{Label: "a", Type: "Spot"}} }, []string{"args.capacityTypes[0].type", `"Spot"`}},
		"a capacity rule by an empty part": {func(a *CostOptimizedArgs) {
			a.CapacityTypes = []CapacityTypeRule{{Label: "a", Contains: []string{""}, Type: "spot"}}
		}, []string{"args.capacityTypes[0].contains[0]"}},
		"no resource that is a GPU": {func(a *CostOptimizedArgs) { a.Resources = []string{} },
			[]string{"args.resources"}},
		"a label that is none": {func(a *CostOptimizedArgs) { a.ProductLabels = []string{"a b"} },
			[]string{"args.labels.product[0]"}},
		"a risk below nothing": {func(a *CostOptimizedArgs) { a.Interruptions[0].PerThousandHours = -1 },
			[]string{"args.interruptions[0].perThousandHours"}},
		"a loss of more than a year": {func(a *CostOptimizedArgs) { a.Interruptions[0].LostMinutes = 525601 },
			[]string{"args.interruptions[0].lostMinutes"}},
		"a risk for a type that does not exist": {func(a *CostOptimizedArgs) { a.Interruptions[0].CapacityType = "flex" },
			[]string{"args.interruptions[0].capacityType"}},
		"two risks for one type": {func(a *CostOptimizedArgs) {
			a.Interruptions = append(a.Interruptions,
				a.Interruptions[0])
		}, []string{"args.interruptions[1].capacityType", "Duplicate"}},
		"a GPU that needs less than no host": {func(a *CostOptimizedArgs) { *a.GPUHost.MilliCPU = -1 },
			[]string{"args.gpuHost.milliCPU"}},
		"more candidates than nodes can exist": {func(a *CostOptimizedArgs) { *a.Candidates = 100_001 },
			[]string{"args.candidates", "100001"}},
		"no interruption at all is not a mistake": {func(a *CostOptimizedArgs) { a.Interruptions = []InterruptionRisk{} },
			nil},
		"a GPU that needs nothing is not a mistake": {func(a *CostOptimizedArgs) { *a.GPUHost.MemoryMiB = 0 }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := &CostOptimizedArgs{}
			args.SetDefaults()
			tc.change(args)
			args.SetDefaults()
			err := args.Validate(field.NewPath("args"))
			if len(tc.want) == 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil {
				t.Fatal("accepted")
			}
			assert.Contains(t, err.Error(), tc.want...)
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error has more than one line: %q", err)
			}
		})
	}
}

// Defaults must not replace what was said, nor say one thing twice when they are set twice.
func TestDefaultsOfCostOptimizedArgsKeepWhatWasSaid(t *testing.T) {
	t.Parallel()
	a := &CostOptimizedArgs{
		Spot: new("require"), ThetaPercent: new(int32(0)), Interruptions: []InterruptionRisk{},
		DefaultRates: &ResourceRates{GPUPerHour: new("2")}, GPUHost: &GPUHostNeed{MilliCPU: new(int64(0))},
	}
	a.SetDefaults()
	a.SetDefaults()
	if *a.Spot != "require" || *a.ThetaPercent != 0 || len(a.Interruptions) != 0 || *a.DefaultRates.GPUPerHour != "2" ||
		*a.GPUHost.MilliCPU != 0 || *a.DefaultRates.CorePerHour != "0.03" || *a.GPUHost.MemoryMiB != 2048 {
		t.Errorf("defaults changed what was said or left something out: %+v", a)
	}
}
