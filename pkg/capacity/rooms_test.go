package capacity

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

func (m *roomModel) askRooms(t *rapid.T, live []int) {
	var keys []ShapeKey
	for _, i := range live {
		keys = append(keys, shapeOf(m.pods[i]))
	}
	for _, labels := range [][]string{nil, {"rack"}, {"kind", "rack"}} {
		known := func(p *BoundPod) (time.Time, bool) { return time.Unix(int64(len(p.UID)), 0), true }
		all, _ := m.x.Rooms(keys, labels, false, func(*v1.Pod, int32) bool { return false }, known)
		none, _ := m.x.Rooms(keys, labels, false, func(*v1.Pod, int32) bool { return true }, known)
		values := map[int]string{}
		for n, node := range all {
			of := ""
			for _, label := range labels {
				of += m.r.nodes[node.Name].Labels[label] + "/"
			}
			if known, ok := values[node.Domain]; ok && known != of {
				t.Fatalf("nodes with the labels %s and %s are in one domain", known, of)
			}
			values[node.Domain] = of
			for k, i := range live {
				room := node.Rooms[k]
				now, empty := m.r.slots(m.pods[i], m.r.nodes[node.Name], false), m.r.slots(m.pods[i], m.r.nodes[node.Name], true)
				if empty == manySlots {
					continue
				}
				same(t, fmt.Sprintf("room of shape %d on %s", i, node.Name), [2]int{room.Now, room.Empty}, [2]int{now, empty})
				first, last := node.Stages[0].Fits[k], node.Stages[len(node.Ends)].Fits[k]
				same(t, fmt.Sprintf("room of shape %d on %s as its pods end", i, node.Name), [2]int{first, last},
					[2]int{now, empty})
				same(t, fmt.Sprintf("room of shape %d on %s without pods", i, node.Name),
					[3]int{none[n].Rooms[k].Now, none[n].Rooms[k].Empty, none[n].Rooms[k].Pods}, [3]int{empty, empty, 0})
			}
		}
	}
}
