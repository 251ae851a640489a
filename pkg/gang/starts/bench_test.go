package starts

import (
	"fmt"
	"testing"

	"berth.dev/berth/pkg/gang"
)

// BenchmarkReserve asks what to keep for a gang of 200 members, each of a class of its own, on 5,000 nodes with 110
// places each.
func BenchmarkReserve(b *testing.B) {
	for _, shapes := range []int{1, 20, 200} {
		b.Run(fmt.Sprintf("shapes=%d", shapes), func(b *testing.B) {
			p := &Problem{Need: gang.Minimum{Total: 200}, MaxNodes: 2500}
			for i := range 200 {
				p.Classes = append(p.Classes, Class{Count: 1, Shape: i % shapes})
			}
			for i := range 5000 {
				n := Node{Name: fmt.Sprintf("n%04d", i)}
				for range shapes {
					n.Rooms = append(n.Rooms, Room{Empty: 110, Pods: 50 + i%60})
				}
				p.Nodes = append(p.Nodes, n)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := Choose(p); !ok {
					b.Fatal("nothing is kept")
				}
			}
		})
	}
}
