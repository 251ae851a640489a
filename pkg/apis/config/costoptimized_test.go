package config

import (
	"testing"
)

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
