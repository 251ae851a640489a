package trace

import (
	"strings"
	"testing"

	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

func TestReadNodes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want []Node
	}{
		"a row with a count is that many nodes": {
			text: "\ufeffname,cpu_milli,memory_mib,gpus,model,count,dollars_per_hour,spot,rack,zone\n" +
				"big,96000,786432,8,A100,2,26.5,true,r1,z1\ncpu,4000,8192,,,,,,,\n",
			want: []Node{
				{Name: "big-0", CPUMilli: 96000, MemoryMiB: 786432, GPUs: 8, Model: "A100", MicroDollarsPerHour: 26_500_000,
					Spot: true, Rack: "r1", Zone: "z1"},
				{Name: "big-1", CPUMilli: 96000, MemoryMiB: 786432, GPUs: 8, Model: "A100", MicroDollarsPerHour: 26_500_000,
					Spot: true, Rack: "r1", Zone: "z1"},
				{Name: "cpu", CPUMilli: 4000, MemoryMiB: 8192},
			},
		},
		"the openb node list": {
			text: "sn,cpu_milli,memory_mib,gpu,model\nn-0,64000,262144,2,P100\nn-1,64000,262144,0,\n",
			want: []Node{
				{Name: "n-0", CPUMilli: 64000, MemoryMiB: 262144, GPUs: 2, Model: "P100"},
				{Name: "n-1", CPUMilli: 64000, MemoryMiB: 262144},
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ReadNodes(strings.NewReader(tt.text), "nodes.csv")
			require.NoError(t, err)
			assert.Equal(t, "nodes", tt.want, got)
		})
	}
}

func TestReadNodesRefuses(t *testing.T) {
	t.Parallel()
	const header = "name,cpu_milli,memory_mib,gpus,model,count,dollars_per_hour\n"
	tests := map[string]struct{ text, want string }{
		"a file without nodes":        {header, `f: there are no nodes in the file`},
		"GPUs of no model":            {header + "a,1,1,4,,,\n", `f:2: column "model": "" is not allowed; want the GPU product of a node that has GPUs`},
		"a node without CPU":          {header + "a,0,1,4,T4,,\n", `f:2: column "cpu_milli": "0" is not allowed; want a whole number from 1 to 1000000000`},
		"a node twice, once by count": {header + "a-1,1,1,,,,\na,1,1,,,3,\n", `f:3: node "a-1" is there already in line 2`},
		"a negative price":            {header + "a,1,1,,,,-3\n", `f:2: column "dollars_per_hour": "-3" is not allowed; want ` + price.Allowed},
		"a quote that is not closed":  {header + "\"a,1,1,,,,\n", `f:2: extraneous or missing " in quoted-field`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ReadNodes(strings.NewReader(tt.text), "f")
			if err == nil {
				t.Fatal("no error")
			}
			assert.Equal(t, "error", tt.want, err.Error())
		})
	}
}

func TestPrices(t *testing.T) {
	t.Parallel()
	prices, err := ReadPrices(strings.NewReader("resource,dollars_per_hour\nT4,0.35\ncpu-core,0.03\nmemory-gib,0.004\n"),
		"prices.csv")
	require.NoError(t, err)
	got, err := prices.Price("n", "T4", price.Capacity{MilliCPU: 64000, MemoryMiB: 262144, MilliGPU: 2000})
	if want := price.MicroDollars(2*350_000 + 64*30_000 + 256*4_000); err != nil || got != want {
		t.Errorf("a node costs %d, %v, want %d", got, err, want)
	}
	_, err = prices.Price("n", "H100", price.Capacity{MilliGPU: 1000})
	if err == nil || err.Error() != `pricing node n: the price table has no rate for GPU model "H100"` {
		t.Errorf("a model without a rate: %v", err)
	}
}

func FuzzReadNodes(f *testing.F) {
	f.Add("name,cpu_milli,memory_mib,gpus,model,count,dollars_per_hour,spot,rack,zone\n" +
		"big,96000,786432,8,A100,2,26.5,true,r1,z1\n")
	f.Add("sn,cpu_milli,memory_mib,gpu,model\nn-0,64000,262144,2,P100\n")
	f.Fuzz(func(t *testing.T, text string) {
		nodes, err := ReadNodes(strings.NewReader(text), "f")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Errorf("the error does not begin with the file: %v", err)
			}
			return
		}
		seen := map[string]bool{}
		for _, n := range nodes {
			if n.CPUMilli < 1 || n.MemoryMiB < 1 || n.GPUs < 0 || n.MicroDollarsPerHour < 0 || seen[n.Name] || n.GPUs > 0 &&
				n.Model == "" {
				t.Errorf("a node that no reader should let through: %+v", n)
			}
			seen[n.Name] = true
		}
	})
}

func FuzzReadPrices(f *testing.F) {
	f.Add("resource,dollars_per_hour\nT4,0.35\ncpu-core,0.03\n")
	f.Fuzz(func(t *testing.T, text string) {
		prices, err := ReadPrices(strings.NewReader(text), "f")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Errorf("the error does not begin with the file: %v", err)
			}
			return
		}
		for model, rate := range prices.GPU {
			if model == "" || rate < 0 {
				t.Errorf("rate of %q: %d", model, rate)
			}
		}
	})
}
