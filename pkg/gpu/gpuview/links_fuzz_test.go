package gpuview

import (
	"testing"

	"berth.dev/berth/pkg/gpu"
)

// FuzzLinkMatrix reads a matrix of links and holds the sets that it offers against their number and the range of
// scores.
func FuzzLinkMatrix(f *testing.F) {
	f.Add(`{"links":[[0,1,"NV12"],[2,3,"NV12"],[0,2,"SYS"]]}`, 4)
	f.Add(`{"links":[[0,1,"NV0"]]}`, 2)
	f.Add(`{"links":[[1,1,"PIX"],[0,9,"PIX"],[0,1]]}`, 8)
	f.Add(`{"links":[[0,1,"NV99"],[1,0,"SYS"]]}`, 16)
	f.Fuzz(func(t *testing.T, value string, n int) {
		if n < 2 || n > 16 {
			t.Skip()
		}
		links, err := parseLinks(value, n)
		if err != nil {
			return
		}
		all := uint64(1)<<n - 1
		for count := 1; count <= n; count++ {
			set, score, ok := links.Best(all, count, false)
			if !ok || score < 0 || score > gpu.MaxLinkScore || set&^all != 0 {
				t.Fatalf("%d of %d GPUs: set %b, score %d, %t", count, n, set, score, ok)
			}
			if linked, most, ok := links.Best(all, count, true); ok && (most > score || linked&^all != 0) {
				t.Fatalf("%d linked ones of %d GPUs score %d, any %d", count, n, most, score)
			}
		}
		if largest := links.LargestLinked(n); largest < 1 || largest > n {
			t.Fatalf("%d of %d GPUs are linked", largest, n)
		}
	})
}
