package starts

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth.dev/berth/pkg/gang"
)

// playPod runs on a node of playCluster. Its end is unknown if it is zero.
type playPod struct {
	uid  gang.UID
	size int
	end  time.Time
}

// playCluster is nodes of eight GPUs, in domains.
type playCluster struct {
	pods    [][]playPod
	domains []int
	kept    []bool
}

const playSize = 8

// problem asks for a number of members, each of some GPUs.
func (c *playCluster) problem(members, size int) *Problem {
	p := &Problem{Need: gang.Minimum{Total: members}, Classes: []Class{{Count: members}}, MaxNodes: len(c.pods)}
	for i, pods := range c.pods {
		n := Node{Name: fmt.Sprint("n", i), Domain: c.domains[i], Kept: c.kept[i]}
		used := 0
		var known []playPod
		for _, pod := range pods {
			used += pod.size
			if !pod.end.IsZero() {
				known = append(known, pod)
			}
		}
		slices.SortFunc(known, func(a, b playPod) int { return a.end.Compare(b.end) })
		n.Rooms = []Room{{Now: (playSize - used) / size, Empty: playSize / size, Pods: len(pods)}}
		n.Stages = []Stage{{Fits: []int{(playSize - used) / size}}}
		for _, pod := range known {
			used -= pod.size
			n.Ends = append(n.Ends, End{At: pod.end, Pod: pod.uid})
			n.Stages = append(n.Stages, Stage{Fits: []int{(playSize - used) / size}})
		}
		p.Nodes = append(p.Nodes, n)
	}
	return p
}

// drawCluster draws pods that fill nodes in part.
func drawCluster(t *rapid.T, now time.Time, unknown bool) *playCluster {
	c := &playCluster{}
	nodes := rapid.IntRange(1, 8).Draw(t, "nodes")
	c.pods, c.kept = make([][]playPod, nodes), make([]bool, nodes)
	for i := range nodes {
		c.domains = append(c.domains, rapid.IntRange(0, 1).Draw(t, "domain"))
		for used := 0; ; {
			pod := playPod{uid: gang.UID(fmt.Sprint(i, "-", used)), size: rapid.IntRange(1, playSize).Draw(t, "size"),
				end: now.Add(time.Duration(rapid.IntRange(1, 50).Draw(t, "end")) * time.Minute)}
			if used += pod.size; used > playSize {
				break
			}
			if unknown && rapid.IntRange(0, 5).Draw(t, "unknown") == 0 {
				pod.end = time.Time{}
			}
			c.pods[i] = append(c.pods[i], pod)
		}
	}
	return c
}

// soonest is when a domain has room for the members, by a look at each minute.
func (c *playCluster) soonest(members, size int, now time.Time) (time.Time, bool) {
	for minute := range 60 {
		at := now.Add(time.Duration(minute) * time.Minute)
		fits := map[int]int{}
		for i, pods := range c.pods {
			free := playSize
			for _, pod := range pods {
				if pod.end.IsZero() || pod.end.After(at) {
					free -= pod.size
				}
			}
			if fits[c.domains[i]] += free / size; fits[c.domains[i]] >= members {
				return at, true
			}
		}
	}
	return time.Time{}, false
}

// TestSoonestIsTheFirstTimeAtWhichTheGroupFits compares with a look at each minute.
func TestSoonestIsTheFirstTimeAtWhichTheGroupFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(0, 0)
		c := drawCluster(t, now, true)
		for i := range c.kept {
			c.kept[i] = rapid.Bool().Draw(t, "kept")
		}
		members, size := rapid.IntRange(1, 6).Draw(t, "members"), rapid.IntRange(1, playSize).Draw(t, "size")
		want, wanted := c.soonest(members, size, now)
		got, ok := Soonest(c.problem(members, size), now)
		if ok != wanted || !got.Start.Equal(want) {
			t.Fatalf("%v at %s, want %v at %s", ok, got.Start, wanted, want)
		}
		if ok && got.Ready != got.Start.Equal(now) {
			t.Fatalf("ready is %v, and the start in %s", got.Ready, got.Start.Sub(now))
		}
		if ok && got.Ready != (got.Last == "") {
			t.Fatalf("ready is %v, and the pod that ends last is %q", got.Ready, got.Last)
		}
		for i := range c.pods {
			for _, pod := range c.pods[i] {
				if ok && pod.uid == got.Last && !pod.end.Equal(got.Start) {
					t.Fatalf("the pod that ends last does so at %s, and the start is at %s", pod.end, got.Start)
				}
			}
		}
	})
}

// TestNoPodThatMayEnterDelaysTheStart plays a cluster of pods that keep their word. At each minute, pods come and enter
// where they may; the start that was told never moves to a later time, and the group fits when it has come.
func TestNoPodThatMayEnterDelaysTheStart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(0, 0)
		c := drawCluster(t, now, false)
		members, size := rapid.IntRange(1, 6).Draw(t, "members"), rapid.IntRange(1, playSize).Draw(t, "size")
		told, ok := Soonest(c.problem(members, size), now)
		if !ok {
			return
		}
		for minute := 0; ; minute++ {
			now = time.Unix(0, 0).Add(time.Duration(minute) * time.Minute)
			for i := range c.pods {
				c.pods[i] = slices.DeleteFunc(c.pods[i], func(pod playPod) bool { return !pod.end.After(now) })
			}
			next, ok := Soonest(c.problem(members, size), now)
			if !ok || next.Start.After(told.Start) {
				t.Fatalf("at minute %d the start moves from %s to %s", minute, told.Start, next.Start)
			}
			if told = next; told.Ready {
				return
			}
			places := make([]int, len(c.pods))
			for _, place := range told.Places {
				n := slices.IndexFunc(c.problem(1, 1).Nodes, func(n Node) bool { return n.Name == place.Node })
				places[n] += place.Count
			}
			for i := range c.kept {
				c.kept[i] = places[i] > 0
			}
			for k := range rapid.IntRange(0, 4).Draw(t, "come") {
				pod := playPod{uid: gang.UID(fmt.Sprint(minute, "+", k)), size: rapid.IntRange(1, playSize).Draw(t, "size"),
					end: now.Add(time.Duration(rapid.IntRange(1, 80).Draw(t, "run")) * time.Minute)}
				n := rapid.IntRange(0, len(c.pods)-1).Draw(t, "on")
				used, stays := pod.size, pod.size+places[n]*size
				for _, other := range c.pods[n] {
					if used += other.size; other.end.After(told.Start) {
						stays += other.size
					}
				}
				if used <= playSize && (!pod.end.After(told.Start) || stays <= playSize) {
					c.pods[n] = append(c.pods[n], pod)
				}
			}
		}
	})
}
