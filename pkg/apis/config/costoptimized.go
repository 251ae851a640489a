package config

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/wellknown"
)

// +kubebuilder:object:root=true

// CostOptimizedArgs are the arguments of the CostOptimized plugin. Keep `resources`, `sharedResources`,
// `slicePrefixes`, `deviceDrivers` and `labels` equal to those of GPUAware.
type CostOptimizedArgs struct {
	metav1.TypeMeta `json:",inline"`

	// The names by which GPUs are known, as in GPUAwareArgs.
	wellknown.GPUNames `json:",inline"`

	// Prices of nodes that do not state their own in an annotation or a label. Of the entries that select a node, the
	// one with the greatest weight counts, among equals the first. Default none.
	Prices []NodePrice `json:"prices,omitempty"`

	// Reads prices from Prometheus, for nodes that neither state their own nor are in `prices`. Off by default.
	PriceSource *PriceSignals `json:"priceSource,omitempty"`

	// Prices of resources. They divide the price of each node over its resources, and are the price of nodes without
	// one if `unknownPrice` is `DefaultRates`.
	DefaultRates *ResourceRates `json:"defaultRates,omitempty"`

	// How a node without a price ranks. `Neutral`: just behind the median of the candidates with a price. `Avoid`:
	// behind all of them. `DefaultRates`: at the default rates. Default `Neutral`.
	UnknownPrice *UnknownPricePolicy `json:"unknownPrice,omitempty"`

	// How pods stand to spot capacity that do not say so by annotation, node selector or toleration. `avoid`: they keep
	// off it. `tolerate`: they may use it. `require`: they use nothing else. Default `avoid`.
	Spot *string `json:"spot,omitempty"`

	// Rules by which the labels of a node say how it was bought. They replace the built-in ones. The first that matches
	// decides; a node that none matches is on-demand.
	CapacityTypes []CapacityTypeRule `json:"capacityTypes,omitempty"`

	// How often each type of capacity is taken away, and what that costs a pod. Types that are not listed are never
	// taken away. Default: `spot` 20 times in 1,000 hours, 30 minutes lost.
	Interruptions []InterruptionRisk `json:"interruptions,omitempty"`

	// How much of its share of a node's price a pod is charged, in percent, where the node runs anyway. From 0 to 100,
	// default 100.
	ThetaPercent *int32 `json:"thetaPercent,omitempty"`

	// What becomes of empty nodes. `Autoscaled`: they are given back, so a pod that keeps one alive is charged for all
	// of it. `Static`: every node is paid, empty or not. Default `Autoscaled`.
	Fleet *FleetPolicy `json:"fleet,omitempty"`

	// How many more pods may be expected soon, in percent of those of their kind, with or without GPUs, that run. A
	// node that must be started for a pod is judged by its price for as many of them as fit; with 0 by its price alone,
	// so that the smallest is best. From 0 to 1000, default 10.
	GrowthPercent *int32 `json:"growthPercent,omitempty"`

	// Hours in which pods may start that wait for cheap ones. A pod names its window in the annotation
	// `berth.dev/start-window`, or a window selects it. Default none.
	Windows []PriceWindow `json:"windows,omitempty"`

	// Least CPU and memory that make a free GPU usable. GPUs that a pod leaves with less are charged to it.
	GPUHost *GPUHostNeed `json:"gpuHost,omitempty"`

	// How many of the best nodes the other plugins of the profile look at; 0 for all nodes. If GPUAware is in the
	// profile, too, the greater number counts, and 0 overrides any. From 0 to 100000, default 64.
	Candidates *int32 `json:"candidates,omitempty"`
}

// NodePrice states the price of the nodes that it selects.
type NodePrice struct {
	// Requirements on the node's labels, as in a node affinity; all of them must hold. At least one is required.
	Requirements []corev1.NodeSelectorRequirement `json:"requirements,omitempty"`
	// Price of the whole node in dollars an hour: a decimal number as a string, such as `"3.06"`. From 0 to 1000000,
	// required.
	PricePerHour string `json:"pricePerHour,omitempty"`
	// Decides between entries that select the same node: the greatest counts. Default 0.
	Weight *int32 `json:"weight,omitempty"`
}

// ResourceRates are prices of resources in dollars an hour: decimal numbers as strings, from 0 to 1000000.
type ResourceRates struct {
	// Price of a CPU core. Default `"0.03"`.
	CorePerHour *string `json:"corePerHour,omitempty"`
	// Price of a GiB of memory. Default `"0.004"`.
	MemoryGiBPerHour *string `json:"memoryGiBPerHour,omitempty"`
	// Price of a GPU. Default `"0.35"`. Where a node's price is known, its GPUs take what CPU and memory leave.
	GPUPerHour *string `json:"gpuPerHour,omitempty"`
}

// UnknownPricePolicy says how a node without a price ranks.
type UnknownPricePolicy string

// FleetPolicy says what becomes of empty nodes.
type FleetPolicy string

// What the fields of CostOptimizedArgs describe.
const (
	UnknownPriceNeutral      UnknownPricePolicy = "Neutral"
	UnknownPriceAvoid        UnknownPricePolicy = "Avoid"
	UnknownPriceDefaultRates UnknownPricePolicy = "DefaultRates"

	FleetAutoscaled FleetPolicy = "Autoscaled"
	FleetStatic     FleetPolicy = "Static"
)

// CapacityTypeRule gives a capacity type to the nodes with a label of one of these values.
type CapacityTypeRule struct {
	// Key of the node label. Required.
	Label string `json:"label,omitempty"`
	// Values that match. With none, and nothing in `contains`, the label's presence is enough.
	Values []string `json:"values,omitempty"`
	// Parts of values that match, in any letter case, such as `spot` in the names of instance types. Default none.
	Contains []string `json:"contains,omitempty"`
	// Type of these nodes: `on-demand`, `reserved` or `spot`. Required.
	Type string `json:"type,omitempty"`
}

// InterruptionRisk is the risk that a type of capacity carries.
type InterruptionRisk struct {
	// Type of capacity: `on-demand`, `reserved` or `spot`. Required.
	CapacityType string `json:"capacityType,omitempty"`
	// How often a node of the type is taken away in 1,000 hours of running. From 0, the default, to 1000000.
	PerThousandHours int32 `json:"perThousandHours,omitempty"`
	// How much of its work a pod loses each time, in minutes. Every member of a gang loses as much. From 0, the
	// default, to 525600 (a year).
	LostMinutes int32 `json:"lostMinutes,omitempty"`
}

// PriceWindow is a span of hours in which the pods start that wait for it.
type PriceWindow struct {
	// DNS label by which pods name the window. Required.
	Name string `json:"name,omitempty"`
	// Days on which the window opens: `Mon`, `Tue`, `Wed`, `Thu`, `Fri`, `Sat`, `Sun`. Default all.
	Days []string `json:"days,omitempty"`
	// Time of day at which the window opens, such as `"22:00"`, by the clocks of the time zone. Required.
	From string `json:"from,omitempty"`
	// Time of day at which the window closes, such as `"06:00"`. A window whose end is before its beginning closes on
	// the next day; `"24:00"` is the end of the day. Required.
	To string `json:"to,omitempty"`
	// Name of a time zone, such as `Europe/Berlin`. Default `UTC`.
	TimeZone *string `json:"timeZone,omitempty"`
	// Selects, by their labels, pods that wait for the window without naming it. It must not be empty. Default none.
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`
}

// GPUHostNeed is what a pod with one GPU needs of the host besides.
type GPUHostNeed struct {
	// CPU for each GPU, in thousandths of a core. From 0, default 1000.
	MilliCPU *int64 `json:"milliCPU,omitempty"`
	// Memory for each GPU, in MiB. From 0, default 2048.
	MemoryMiB *int64 `json:"memoryMiB,omitempty"`
}

// SetDefaults fills the fields that were left out.
func (a *CostOptimizedArgs) SetDefaults() {
	setDefaultsGPUNames(&a.GPUNames)
	SetDefaultsPriceSignals(a.PriceSource)
	setDefault(&a.DefaultRates, ResourceRates{})
	setDefault(&a.DefaultRates.CorePerHour, "0.03")
	setDefault(&a.DefaultRates.MemoryGiBPerHour, "0.004")
	setDefault(&a.DefaultRates.GPUPerHour, "0.35")
	setDefault(&a.UnknownPrice, UnknownPriceNeutral)
	setDefault(&a.Spot, "avoid")
	setDefault(&a.ThetaPercent, 100)
	setDefault(&a.Fleet, FleetAutoscaled)
	setDefault(&a.GrowthPercent, 10)
	setDefault(&a.GPUHost, GPUHostNeed{})
	setDefault(&a.GPUHost.MilliCPU, 1000)
	setDefault(&a.GPUHost.MemoryMiB, 2048)
	setDefault(&a.Candidates, defaultCandidates)
	if a.Interruptions == nil {
		a.Interruptions = []InterruptionRisk{{CapacityType: "spot", PerThousandHours: 20, LostMinutes: 30}}
	}
	for i := range a.Windows {
		w := &a.Windows[i]
		setDefault(&w.TimeZone, "UTC")
		if w.Days == nil {
			w.Days = slices.Clone(weekdayNames)
		}
	}
	for i := range a.Prices {
		setDefault(&a.Prices[i].Weight, 0)
	}
}
