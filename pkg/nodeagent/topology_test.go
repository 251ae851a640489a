package nodeagent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/test/harness/require"
)

// testdata reads an answer of the tool.
func testdata(tb testing.TB, name string) string {
	tb.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	return string(content)
}

func TestTheMatrixOfEachMachineIsRead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		gpus int
		// links counts pairs by link, sample are some of them.
		links  map[string]int
		sample []gpuview.Link
	}{
		"dgx-a100": {8, map[string]int{"NV12": 28}, nil},
		"dgx-h100": {8, map[string]int{"NV18": 28}, nil},
		"4-a100-pcie-bridges": {4, map[string]int{"NV12": 2, "SYS": 4},
			[]gpuview.Link{{A: 0, B: 1, Name: "NV12"}, {A: 2, B: 3, Name: "NV12"}, {A: 1, B: 2, Name: "SYS"}}},
		"2-sockets-pcie": {8, map[string]int{"PIX": 4, "PXB": 4, "NODE": 4, "SYS": 16}, []gpuview.Link{
			{A: 0, B: 1, Name: "PIX"}, {A: 0, B: 2, Name: "PXB"}, {A: 4, B: 6, Name: "NODE"}, {A: 6, B: 7, Name: "PIX"},
			{A: 3, B: 4, Name: "SYS"},
		}},
		"single":      {1, nil, nil},
		"mig-columns": {4, map[string]int{"NODE": 2, "SYS": 4}, []gpuview.Link{{A: 0, B: 1, Name: "NODE"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, pairs, err := parseTopology(testdata(t, "topo-"+name+".txt"))
			require.NoError(t, err)
			var links map[string]int
			byGPUs := map[[2]int]string{}
			for _, p := range pairs {
				if links == nil {
					links = map[string]int{}
				}
				links[p.Name]++
				byGPUs[[2]int{p.A, p.B}] = p.Name
			}
			if n != tc.gpus {
				t.Errorf("%d GPUs, want %d", n, tc.gpus)
			}
			if diff := cmp.Diff(tc.links, links); diff != "" {
				t.Errorf("pairs by link (-want +got):\n%s", diff)
			}
			for _, want := range tc.sample {
				if got := byGPUs[[2]int{want.A, want.B}]; got != want.Name {
					t.Errorf("link of GPUs %d and %d is %q, want %q", want.A, want.B, got, want.Name)
				}
			}
		})
	}
}

func TestAMatrixThatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":                {"", "no matrix"},
		"an error of the driver": {"Failed to initialize NVML: Driver/library version mismatch\n", "want the names of GPUs"},
		"a row is missing":       {"\tGPU0\tGPU1\nGPU0\t X \tNV1\n", "no row for GPU 1"},
		"a row too many":         {"\tGPU0\nGPU0\t X \nGPU1\t X \n", "2 rows of GPUs and 1 columns"},
		"a row twice":            {"\tGPU0\nGPU0\t X \nGPU0\t X \n", "two rows for GPU 0"},
		"a row is cut off":       {"\tGPU0\tGPU1\nGPU0\t X \tNV1\nGPU1\tNV1\n", "row of GPU 1 has 1 cells: want 2"},
		"two ways differ":        {"\tGPU0\tGPU1\nGPU0\t X \tNV1\nGPU1\tNV2\t X \n", `"NV1" one way and "NV2" the other`},
		"an unknown link":        {"\tGPU0\tGPU1\nGPU0\t X \tFOO\nGPU1\tFOO\t X \n", `unknown link "FOO"`},
		"no cell with itself":    {"\tGPU0\tGPU1\nGPU0\tNV1\tNV1\nGPU1\tNV1\t X \n", "GPU 0 with itself"},
		"columns out of order":   {"\tGPU1\tGPU0\nGPU1\t X \tNV1\nGPU0\tNV1\t X \n", "want them in order"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, _, err := parseTopology(tc.text); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func FuzzTopology(f *testing.F) {
	files, err := filepath.Glob("testdata/topo-*.txt")
	if err != nil || len(files) == 0 {
		f.Fatalf("no recorded matrices: %v", err)
	}
	for _, file := range files {
		f.Add(testdata(f, filepath.Base(file)))
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, pairs, err := parseTopology(text)
		if err != nil {
			return
		}
		if len(pairs) != n*(n-1)/2 {
			t.Fatalf("%d pairs of %d GPUs", len(pairs), n)
		}
		for _, p := range pairs {
			if p.A < 0 || p.A >= p.B || p.B >= gpuview.MaxGPUs {
				t.Fatalf("pair %v", p)
			}
		}
	})
}
