package config

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/wellknown"
)

// +kubebuilder:object:root=true

// CostOptimizedArgs tunes the CostOptimized plugin.
type CostOptimizedArgs struct {
	metav1.TypeMeta `json:",inline"`

	// The names by which GPUs are known, as in GPUAwareArgs.
	wellknown.GPUNames `json:",inline"`

	// Prices state the prices of the nodes that do not state their own.
	Prices []NodePrice `json:"prices,omitempty"`

	// PriceSource reads prices from Prometheus, for nodes that neither state their own nor are priced by the table. Off
	// when left out.
	PriceSource *PriceSignals `json:"priceSource,omitempty"`

	// DefaultRates are what resources cost where nothing better is known. They divide every node's price over its
	// resources, and price whole nodes when unknownPrice is DefaultRates.
	DefaultRates *ResourceRates `json:"defaultRates,omitempty"`

	// UnknownPrice says how a node without a price ranks. Default Neutral.
	UnknownPrice *UnknownPricePolicy `json:"unknownPrice,omitempty"`

	// Spot is the stance to spot capacity of pods that state none, by annotation, node selector or toleration: avoid,
	// tolerate or require. Default avoid.
	Spot *string `json:"spot,omitempty"`

	// CapacityTypes replace the built-in rules by which a node's labels say how it was bought. The first that matches
	// decides; a node that none matches is on-demand.
	CapacityTypes []CapacityTypeRule `json:"capacityTypes,omitempty"`

	// Interruptions say how often each type of capacity is taken away and what that costs a pod. Types that are not
	// listed are never taken away. Default: spot 20 times in a thousand hours, 30 minutes lost.
	Interruptions []InterruptionRisk `json:"interruptions,omitempty"`

	// ThetaPercent is how much of its share of a node's price a pod is charged where the node runs anyway. Default 100.
	ThetaPercent *int32 `json:"thetaPercent,omitempty"`

	// Fleet says whether an empty node can be given back, so that a pod that keeps one alive is charged for all of it.
	// Default Autoscaled.
	Fleet *FleetPolicy `json:"fleet,omitempty"`

	// GrowthPercent is how many more pods may be expected soon, in percent of those of their kind, with or without GPUs,
	// that run. A node that has to be started for a pod is judged by its price for as many of them as fit; with 0 by its
	// price alone, so that the smallest is best. Default 10.
	GrowthPercent *int32 `json:"growthPercent,omitempty"`

	// Windows are the hours in which pods may start that wait for cheap ones. A pod names its window in the annotation
	// berth.dev/start-window, or a window selects it.
	Windows []PriceWindow `json:"windows,omitempty"`

	// GPUHost is the least CPU and memory that make a free GPU of use. GPUs that a pod leaves with less are charged to it.
	GPUHost *GPUHostNeed `json:"gpuHost,omitempty"`

	// Candidates is how many of the best nodes the other plugins of the profile look at, as in GPUAwareArgs. Where both
	// plugins are in a profile the greater number counts, and 0 (all nodes) before any. Default 64.
	Candidates *int32 `json:"candidates,omitempty"`
}

// NodePrice states the price of the nodes that it selects. Of the entries that select a node the one with the greatest
// weight counts, among equals the first.
type NodePrice struct {
	// Requirements on the node's labels; all of them hold.
	Requirements []corev1.NodeSelectorRequirement `json:"requirements,omitempty"`
	// PricePerHour is the price of the whole node in decimal dollars.
	PricePerHour string `json:"pricePerHour,omitempty"`
	// Weight decides between entries that select the same node. Default 0.
	Weight *int32 `json:"weight,omitempty"`
}

// ResourceRates are prices of resources in decimal dollars an hour.
type ResourceRates struct {
	// CorePerHour is the price of a CPU core. Default 0.03.
	CorePerHour *string `json:"corePerHour,omitempty"`
	// MemoryGiBPerHour is the price of a GiB of memory. Default 0.004.
	MemoryGiBPerHour *string `json:"memoryGiBPerHour,omitempty"`
	// GPUPerHour is the price of a GPU. Default 0.35. Where a node's price is known its GPUs take what the host leaves.
	GPUPerHour *string `json:"gpuPerHour,omitempty"`
}

// UnknownPricePolicy says how a node without a price ranks.
type UnknownPricePolicy string

// Ways to rank a node without a price.
const (
	// UnknownPriceNeutral ranks it as the median of the candidates with a price.
	UnknownPriceNeutral UnknownPricePolicy = "Neutral"
	// UnknownPriceAvoid ranks it behind every candidate with a price.
	UnknownPriceAvoid UnknownPricePolicy = "Avoid"
	// UnknownPriceDefaultRates prices it at the default rates.
	UnknownPriceDefaultRates UnknownPricePolicy = "DefaultRates"
)

// CapacityTypeRule gives a capacity type to the nodes with a label of one of these values.
type CapacityTypeRule struct {
	Label string `json:"label,omitempty"`
	// Values that match; with none, and nothing in contains, the label's presence is enough.
	Values []string `json:"values,omitempty"`
	// Contains lists parts of values that match, in any letter case, such as spot in the names of instance types.
	Contains []string `json:"contains,omitempty"`
	// Type is on-demand, reserved or spot.
	Type string `json:"type,omitempty"`
}

// InterruptionRisk is the risk that a type of capacity carries.
type InterruptionRisk struct {
	// CapacityType is on-demand, reserved or spot.
	CapacityType string `json:"capacityType,omitempty"`
	// PerThousandHours is how often a node of the type is taken away in a thousand hours of running.
	PerThousandHours int32 `json:"perThousandHours,omitempty"`
	// LostMinutes is how much of its work a pod loses each time. Every member of a gang loses as much.
	LostMinutes int32 `json:"lostMinutes,omitempty"`
}

// FleetPolicy says what becomes of empty nodes.
type FleetPolicy string

// What becomes of empty nodes.
const (
	// FleetAutoscaled gives empty nodes back.
	FleetAutoscaled FleetPolicy = "Autoscaled"
	// FleetStatic pays for every node, empty or not.
	FleetStatic FleetPolicy = "Static"
)

// PriceWindow is a span of hours in which the pods start that wait for it.
type PriceWindow struct {
	// Name by which pods refer to the window.
	Name string `json:"name,omitempty"`
	// Days on which the window opens: Mon, Tue, Wed, Thu, Fri, Sat, Sun. Default all.
	Days []string `json:"days,omitempty"`
	// From and To are times of day, such as "22:00" and "06:00", by the clocks of the time zone. A window whose end is
	// before its beginning closes on the next day; "24:00" is the end of the day.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// TimeZone is the name of a time zone such as Europe/Berlin. Default UTC.
	TimeZone *string `json:"timeZone,omitempty"`
	// PodSelector selects, by their labels, pods that wait for the window without naming it.
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`
}

// GPUHostNeed is what a pod with one GPU asks of the host besides.
type GPUHostNeed struct {
	// MilliCPU per GPU. Default 1000.
	MilliCPU *int64 `json:"milliCPU,omitempty"`
	// MemoryMiB per GPU. Default 2048.
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
