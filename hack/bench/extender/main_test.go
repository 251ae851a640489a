package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"berth.dev/berth/pkg/schedulerconfig"
)

func TestTheShareOfAnExtenderIsWhatItAddsOutsideTheExtensionPoints(t *testing.T) {
	t.Parallel()
	runs := []run{
		{Nodes: 10, Contender: "extender", AlgorithmMillis: 10, OutsideMillis: 6},
		{Nodes: 10, Contender: "stock", AlgorithmMillis: 4, OutsideMillis: 0.5},
		{Nodes: 10, Contender: "stock", AlgorithmMillis: 4, OutsideMillis: 1.5},
		{Nodes: 10, Contender: "plugin", AlgorithmMillis: 5, OutsideMillis: 0.5, SharePercent: 4},
		{Nodes: 20, Contender: "extender", AlgorithmMillis: 10, OutsideMillis: 5},
	}
	addOutside(runs)
	var got []float64
	for _, r := range runs {
		got = append(got, r.SharePercent)
	}
	if diff := cmp.Diff([]float64{50, 0, 0, 4, 50}, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
}

func TestEveryContendersConfigurationsLoad(t *testing.T) {
	t.Parallel()
	for _, c := range contenders {
		texts := [][]byte{c.scheduler("127.0.0.1:1").Config}
		if c.extenderProfile != "" {
			texts = append(texts, []byte(head+c.extenderProfile))
		}
		for _, text := range texts {
			file := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := schedulerconfig.Load(file); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}
