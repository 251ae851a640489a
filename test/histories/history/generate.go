package history

import (
	"fmt"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// generator makes a history from a seed.
type generator struct {
	random *rand.Rand
	// jobs decides which gangs are Jobs. It is apart from the rest, which is as it was before there were Jobs.
	jobs *rand.Rand
	out  *History
	cast
	// pods, gated, gangs and nodes that were made; some may be gone.
	pods, gated, gangs, nodes []string
	made                      map[string]*Node
	// shut are the nodes that are unschedulable for now, gone those that were removed.
	shut, gone map[string]bool
	// members of each gang as they were made first.
	members map[string][]Pod
}

// cast is what a whole history draws from.
type cast struct {
	models []string
	zones  []string
	// modes are those that nodes may have, one each, and "" for one without GPUs.
	modes []string
	// local is set if nodes have volumes.
	local bool
	// profiles are those that pods may name, none in most histories.
	profiles []string
}

// Generate makes the history of a seed: a cluster of 2 to 12 nodes and 10 to 60 steps. Small clusters show most faults,
// and show them in few steps.
func Generate(seed uint64) *History {
	g := &generator{
		random: rand.New(rand.NewPCG(seed, 0x6265727468)), //nolint:gosec // a history must come again from its seed
		jobs:   rand.New(rand.NewPCG(seed, 0x6a6f6273)),   //nolint:gosec // as above
		out:    &History{Seed: seed},
		cast:   cast{zones: []string{"a", "b"}}, made: map[string]*Node{}, shut: map[string]bool{}, gone: map[string]bool{},
		members: map[string][]Pod{},
	}
	g.models = []string{"Tesla-T4", "NVIDIA-A100-SXM4-80GB", "NVIDIA-H100-80GB-HBM3"}[:1+g.random.IntN(3)]
	if g.one(2, 3) {
		g.out.MaxDelayMillis = g.pick(5, 50, 500)
	}
	if g.one(1, 3) {
		g.out.LostPercent = g.pick(1, 5, 20, 20)
	}
	g.local = g.one(1, 4)
	if g.one(1, 3) {
		g.profiles = []string{"gpu-aware-scheduler", "cost-optimized-scheduler", "gang-scheduler",
			"scheduler-plugins-scheduler", DefaultProfile}
	}
	g.modes = []string{"", WholeMode, WholeMode, SharedMode, SharedMode, SharedMode, ClaimedMode}
	if g.one(1, 2) { // all nodes alike, as most clusters are
		g.modes = []string{g.modes[g.random.IntN(len(g.modes))]}
	}
	for range 2 + g.random.IntN(11) {
		g.out.Nodes = append(g.out.Nodes, *g.node())
	}
	if g.one(1, 3) { // most of what goes wrong goes wrong where there is little room
		g.fill()
	}
	for steps := 10 + g.random.IntN(51); len(g.out.Steps) < steps; {
		g.step()
	}
	g.out.giveHalves(rand.New(rand.NewPCG(seed, 0x68616c766573))) //nolint:gosec // as above
	return g.out
}

// one says yes a times in b.
func (g *generator) one(a, b int) bool { return g.random.IntN(b) < a }

func (g *generator) pick(of ...int) int { return of[g.random.IntN(len(of))] }

func (g *generator) name(of []string) string {
	if len(of) == 0 {
		return "none"
	}
	// Those of late are touched more often: what is under way is where faults are.
	return of[max(g.random.IntN(len(of)), g.random.IntN(len(of)))]
}

func (g *generator) node() *Node {
	n := &Node{
		Name: fmt.Sprintf("n%d", len(g.nodes)), Zone: g.zones[g.random.IntN(len(g.zones))],
		CPUs: int64(g.pick(4, 8, 32, 96)), MemGiB: int64(g.pick(16, 64, 256)),
	}
	if n.Mode = g.modes[g.random.IntN(len(g.modes))]; n.Mode != "" {
		n.GPUs, n.Model = g.pick(1, 2, 4, 8, 8), g.models[g.random.IntN(len(g.models))]
	}
	if g.local {
		n.Volumes = g.pick(0, 1, 1, 2, 3)
	}
	if g.one(1, 2) {
		n.Price = fmt.Sprintf("%d.%02d", 1+g.random.IntN(30), g.random.IntN(100))
	}
	g.nodes, g.made[n.Name] = append(g.nodes, n.Name), n
	return n
}

func (g *generator) pod() *Pod {
	p := &Pod{
		Name: fmt.Sprintf("p%d", len(g.pods)), MilliCPU: int64(g.pick(100, 500, 1000, 4000)), MemGiB: int64(g.pick(1, 4, 16)),
		Priority: int32(g.pick(0, 0, 0, 100, 1000)), //nolint:gosec // small
		Returns:  g.one(1, 3), KeepsName: g.one(1, 2), Backfill: g.one(1, 10), Guarded: g.one(1, 8), Tolerates: g.one(1, 3),
		EndsSeconds: int64(g.pick(0, 0, 1, 5, 30)), LateSeconds: int64(g.pick(0, 0, 0, 0, 2, 50)),
	}
	modes := g.modes
	if g.one(1, 12) {
		modes = []string{WholeMode, SharedMode, ClaimedMode} // there may be no such node
	}
	switch mode := modes[g.random.IntN(len(modes))]; {
	case mode == "" || g.one(1, 8): // none
	case mode == ClaimedMode:
		p.ClaimedGPUs = int64(g.pick(1, 1, 2, 4))
	case mode == SharedMode && g.one(2, 3):
		p.MilliGPU = g.pick(100, 250, 300, 500, 700, 900)
	default:
		p.GPUs = g.pick(1, 1, 2, 4, 8)
	}
	if p.GPUs+p.MilliGPU > 0 && g.one(1, 4) {
		p.Models = []string{g.models[g.random.IntN(len(g.models))]}
	}
	if g.one(1, 8) {
		p.Zone = g.zones[g.random.IntN(len(g.zones))]
	}
	p.Port, p.Apart = g.one(1, 20), g.one(1, 20)
	switch {
	case g.local && g.one(1, 4):
		p.LocalVolume = true
	case g.one(1, 12):
		p.VolumeZone = g.zones[g.random.IntN(len(g.zones))]
	}
	p.Gated = g.one(1, 10)
	if len(g.profiles) > 0 {
		p.Profile = g.profiles[g.random.IntN(len(g.profiles))]
	}
	if g.one(1, 15) {
		p.Spread = g.spread("singles")
	}
	g.keep(p)
	return p
}

func (g *generator) keep(p *Pod) {
	g.pods = append(g.pods, p.Name)
	if p.Gated {
		g.gated = append(g.gated, p.Name)
	}
}

func (g *generator) add(s Step) {
	if s.After.Duration == 0 {
		s.After.Duration = g.after()
	}
	g.out.Steps = append(g.out.Steps, s)
	switch s.Do {
	case CordonNode, TaintNode:
		g.shut[s.Name] = true
	case OpenNode, UntaintNode:
		delete(g.shut, s.Name)
	case RemoveNode:
		g.gone[s.Name] = true
	case MoveNode:
		g.made[s.Name].Zone = s.Value
	}
}

// after is the time to the next step: often within what is under way, sometimes after everything has come to rest.
func (g *generator) after() time.Duration {
	switch g.random.IntN(4) {
	case 0:
		return time.Duration(1+g.random.IntN(2000)) * time.Microsecond
	case 1:
		return time.Duration(1+g.random.IntN(200)) * time.Millisecond
	case 2:
		return time.Duration(1+g.random.IntN(3000)) * time.Millisecond
	default:
		return time.Duration(1+g.random.IntN(60)) * time.Second
	}
}

func (g *generator) step() {
	switch g.random.IntN(36) {
	case 0, 1, 2, 3, 4, 5:
		g.add(Step{Do: CreatePod, Pod: g.pod()})
	case 6, 7, 8:
		g.gang()
	case 9:
		g.add(Step{Do: DeletePod, Name: g.name(g.pods)})
	case 10:
		g.add(Step{Do: FinishPod, Name: g.name(g.pods)})
	case 11:
		g.add(Step{Do: UngatePod, Name: g.name(g.gated)})
	case 12:
		g.add(Step{Do: EditPod, Name: g.name(g.pods), Value: fmt.Sprint(g.random.IntN(3))})
	case 13:
		if g.one(1, 2) {
			g.add(Step{Do: DeleteGang, Name: g.name(g.gangs)})
		} else {
			g.add(Step{Do: ScaleGang, Name: g.name(g.gangs), Count: 1 + g.random.IntN(6)})
		}
	case 14, 15:
		g.change()
	case 16:
		g.add(Step{Do: Restart, Down: metav1.Duration{Duration: g.after()}})
	case 17:
		g.arrive()
	case 18:
		g.add(Step{Do: []string{KillPod, FailPod}[g.random.IntN(2)], Name: g.name(g.pods)})
	case 19:
		switch {
		case g.one(1, 2):
			g.rerun(g.name(g.gangs))
		case g.one(1, 2):
			g.add(Step{Do: MoveToGang, Name: g.name(g.pods)})
		default:
			g.add(Step{Do: MoveToGang, Name: g.name(g.pods), Value: g.name(g.gangs)})
		}
	case 20:
		g.degrade(g.name(g.gangs))
	case 21:
		g.maintain(g.name(g.nodes))
	case 22, 23:
		g.burst(2 + g.random.IntN(5))
	case 24, 25:
		g.contend()
	case 26:
		g.roll(g.name(g.gangs))
	case 27:
		g.fill()
	case 28:
		g.rivals(g.name(g.gangs))
	case 29:
		g.reinforce(g.name(g.gangs))
	case 30, 31, 32:
		g.contest()
	case 33:
		g.rerun(g.name(g.gangs))
	default:
		g.interrupt()
	}
}

func (g *generator) spread(of string) *Spread {
	return &Spread{Of: of, Zones: g.one(1, 2), MaxSkew: int32(g.pick(1, 1, 2))} //nolint:gosec // small
}

// burst makes pods that come almost at once.
func (g *generator) burst(n int) {
	for range n {
		g.add(Step{Do: CreatePod, Pod: g.pod(), After: metav1.Duration{Duration: time.Microsecond}})
	}
}

// change does something to a node.
func (g *generator) change() {
	name := g.name(g.nodes)
	switch g.random.IntN(7) {
	case 0:
		g.add(Step{Do: RemoveNode, Name: name})
	case 1:
		g.add(Step{Do: CordonNode, Name: name})
	case 2:
		g.add(Step{Do: TaintNode, Name: name})
	case 3:
		g.add(Step{Do: UntaintNode, Name: name})
	case 4:
		g.add(Step{Do: ResizeNode, Name: name, Count: g.random.IntN(g.made[name].GPUs + 1)})
	case 5:
		g.add(Step{Do: MoveNode, Name: name, Value: g.zones[g.random.IntN(len(g.zones))]})
	default:
		g.add(Step{Do: OpenNode, Name: name})
	}
}

// gang makes a PodGroup and its pods: alike or odd, its minimum or more, sometimes fewer, sometimes with roles, and the
// pods may come first.
func (g *generator) gang() {
	like := g.pod()
	g.forgetLast(like) // it is the pattern of the members only
	g.gangOf(like, 1+g.random.IntN(6))
}

// forgetLast takes back that the pod was made.
func (g *generator) forgetLast(p *Pod) {
	g.pods = g.pods[:len(g.pods)-1]
	if p.Gated {
		g.gated = g.gated[:len(g.gated)-1]
	}
}

// gangOf makes a gang of pods like this one with a minimum, and returns its name.
func (g *generator) gangOf(like *Pod, minimum int) string {
	gang := &Gang{Name: fmt.Sprintf("g%d", len(g.gangs)), MinMember: minimum, OneZone: g.one(1, 6)}
	if like.ClaimedGPUs > 0 { // a plan that is wrong about devices is made good by the next, unless it took the wrong zone
		gang.OneZone = g.one(1, 2)
	}
	g.gangs = append(g.gangs, gang.Name)
	if g.one(1, 4) {
		gang.TimeoutSeconds = int64(g.pick(1, 10, 120))
	}
	members := gang.MinMember + g.pick(0, 0, 0, 1, 3, -1)
	roles := gang.MinMember > 1 && g.one(1, 4)
	if roles {
		gang.MinByRole = fmt.Sprintf("leader=1,worker=%d", gang.MinMember-1)
	}
	odd, near := g.one(1, 3), g.one(1, 12)
	spread := like.Spread
	if g.one(1, 8) {
		spread = g.spread(gang.Name)
	}
	labels := !roles && !gang.OneZone && gang.TimeoutSeconds == 0 && g.one(1, 5)
	gang.Job = !roles && !gang.OneZone && gang.TimeoutSeconds == 0 && !labels && g.jobs.IntN(4) == 0
	create := Step{Do: CreateGang, Gang: gang, After: metav1.Duration{Duration: g.after()}}
	first := g.one(3, 4) || gang.Job
	if first && !labels {
		g.add(create)
	}
	leaver := -1 // who leaves the gang before its last member comes
	if members > 1 && g.one(1, 5) {
		leaver = g.random.IntN(members - 1)
	}
	for i := range members {
		if leaver >= 0 && i == members-1 {
			g.add(Step{Do: MoveToGang, Name: g.members[gang.Name][leaver].Name})
		}
		p := *like
		if odd {
			p = *g.pod()
			p.Priority = like.Priority
		} else {
			p.Name = fmt.Sprintf("p%d", len(g.pods))
			g.keep(&p)
		}
		p.Gang, p.Near, p.Spread, p.Job = gang.Name, near && !gang.Job, spread, gang.Job
		p.KeepsName = p.KeepsName && !gang.Job
		if labels {
			p.MinAvailable = gang.MinMember
		}
		if roles {
			p.Role = "worker"
			if i == 0 {
				p.Role = "leader"
			}
		}
		g.members[gang.Name] = append(g.members[gang.Name], p)
		after := time.Duration(1+g.random.IntN(20)) * time.Millisecond
		g.add(Step{Do: CreatePod, Pod: &p, After: metav1.Duration{Duration: after}})
	}
	if !first && !labels {
		g.add(create)
	}
	if g.one(1, 5) {
		g.rivals(gang.Name)
	}
	return gang.Name
}
