package eviction

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"berth.dev/berth/pkg/gang"
)

// crowded returns a cluster of nodes with 8 GPUs, and pods of one GPU on as many GPUs as asked for, which a gang of 64
// members of 8 GPUs wants. Pods are in groups of a size, or single if that is 1, and fill one node after the other
// unless they are scattered.
func crowded(nodes, pods, groupSize int, scattered bool) *Problem {
	r := rand.New(rand.NewPCG(1, 1))
	p := &Problem{
		Priority: 100,
		Need:     gang.Minimum{Total: 64},
		Classes:  []Class{{Demand: Vector{8, 16_000, 64 << 30, 1}, Count: 64}},
		Groups:   map[gang.ID]Group{},
	}
	for i := range nodes {
		p.Nodes = append(p.Nodes, Node{Name: fmt.Sprintf("n%04d", i), Free: Vector{8, 128_000, 1 << 40, 110}})
	}
	gpus := make([]int, 0, 8*nodes)
	for i := range nodes {
		for range 8 {
			gpus = append(gpus, i)
		}
	}
	if scattered {
		r.Shuffle(len(gpus), func(i, j int) { gpus[i], gpus[j] = gpus[j], gpus[i] })
	}
	for i, n := range gpus {
		request := Vector{1, 4_000, 16 << 30, 1}
		for k := range request {
			p.Nodes[n].Free[k] -= request[k]
		}
		// GPUs beyond those of the pods are held by more important ones, or are free if the pods are scattered.
		if i >= pods {
			if scattered {
				p.Nodes[n].Free[0]++
			}
			continue
		}
		v := Victim{
			UID: gang.UID(fmt.Sprintf("v%05d", i)), Node: n, Priority: int32(r.IntN(3)),
			Started: t0.Add(time.Duration(r.IntN(1e6)) * time.Second), Requests: request,
		}
		if groupSize > 1 {
			v.Group = gang.ID{Namespace: "ns", Name: fmt.Sprintf("g%d", i/groupSize)}
			v.Priority = int32(i / groupSize % 3)
			g := p.Groups[v.Group]
			g.Minimum.Total, g.Settled, g.Bound = groupSize*7/8, g.Settled+1, g.Bound+1
			p.Groups[v.Group] = g
		}
		p.Victims = append(p.Victims, v)
	}
	return p
}

func BenchmarkChoose(b *testing.B) {
	for _, bc := range []struct {
		name               string
		nodes, pods, group int
		scattered          bool
	}{
		{"200 nodes, 512 pods on 64 of them", 200, 512, 1, false},
		{"200 nodes, 512 pods scattered", 200, 512, 1, true},
		{"200 nodes, 1600 pods in gangs of 64 scattered", 200, 1600, 64, true},
		{"5000 nodes, 40000 pods", 5000, 40000, 1, false},
		{"5000 nodes, 40000 pods in gangs of 64", 5000, 40000, 64, false},
		{"5000 nodes, 40000 pods in gangs of 64 scattered", 5000, 40000, 64, true},
		{"5000 nodes, 40000 pods in gangs of 1000 scattered", 5000, 40000, 1000, true},
	} {
		b.Run(bc.name, func(b *testing.B) {
			p := crowded(bc.nodes, bc.pods, bc.group, bc.scattered)
			victims := 0
			b.ReportAllocs()
			for b.Loop() {
				e := Choose(p)
				if e.Outcome != RoomAfterEviction {
					b.Fatal(e)
				}
				victims = len(e.Victims)
			}
			b.ReportMetric(float64(victims), "victims")
		})
	}
}
