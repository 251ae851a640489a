package dryrun

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/dryrun/sets"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/pkg/plural"
)

// Members of one gang work in step, so that the slowest GPU sets the pace of all. A plan that mixes models is therefore
// made again on nodes of one model, and taken if as many members find a place there.

// Models tells the GPU models of nodes. It remembers those that it was asked for. It belongs to the scheduling cycles;
// there is one at a time.
type Models struct {
	// Names are those of the profiles: a gang may have members of several.
	Names *gpuview.ProfileKeys
	keys  []*gpuview.Keys
	known map[string]knownModel
}

// knownModel is what was read from one version of a node.
type knownModel struct {
	node  *v1.Node
	model string
}

// mostKnown bounds what is remembered of nodes that have gone.
const mostKnown = 100_000

// NewModels knows no model yet.
func NewModels() *Models {
	return &Models{Names: &gpuview.ProfileKeys{}, known: map[string]knownModel{}}
}

// keysOfAll are the keys of all profiles. Where no profile reads GPUs they are the defaults.
func (g *Models) keysOfAll() []*gpuview.Keys {
	if g.keys == nil {
		if g.keys = g.Names.All(); len(g.keys) == 0 {
			args := &config.GPUAwareArgs{}
			config.SetDefaultsGPUAwareArgs(args)
			g.keys = []*gpuview.Keys{{GPUNames: args.Names()}}
		}
	}
	return g.keys
}

// mayUse is false only for pods that certainly use no GPU.
func (g *Models) mayUse(pod *v1.Pod) bool {
	return slices.ContainsFunc(g.keysOfAll(), func(k *gpuview.Keys) bool { return k.MayUseGPU(pod) })
}

// model of the node's GPUs, empty without GPUs or when unknown.
func (g *Models) model(node *v1.Node) string {
	k := g.known[node.Name]
	if k.node != node {
		k = knownModel{node: node}
		for _, keys := range g.keysOfAll() {
			if read, _ := keys.ReadGPUNode(node); k.model == "" {
				k.model = read.Model()
			}
		}
		if len(g.known) >= mostKnown {
			clear(g.known)
		}
		g.known[node.Name] = k
	}
	return k.model
}

// byName is the model of a node's GPUs by the node's name, empty for a node that is not there.
func (g *Models) byName(nodes fwk.NodeInfoLister, name string) string {
	node, err := nodes.Get(name)
	if err != nil {
		return ""
	}
	return g.model(node.Node())
}

// modelLimits keeps classes on nodes with GPUs of one model each.
type modelLimits struct {
	models  *Models
	byClass map[string]string
}

// allow reports whether members of the class may go to the node.
func (l *modelLimits) allow(class string, node *v1.Node) bool {
	if l == nil {
		return true
	}
	model, limited := l.byClass[class]
	return !limited || strings.EqualFold(model, l.models.model(node))
}

// of is the model to which the class is kept, empty for none, and which nodes have it.
func (l *modelLimits) of(class string) (string, func(*v1.Node) bool) {
	if l == nil {
		return sets.NoLimits(class)
	}
	return l.byClass[class], func(node *v1.Node) bool { return l.allow(class, node) }
}

// modelChoice looks for a plan of a gang on one model.
type modelChoice struct {
	planner *Planner
	id      gang.ID
	levels  gangview.Topology
	turn    gang.Turn
	nodes   []fwk.NodeInfo
	// classes of members that use GPUs, with one of them and with their number.
	classes map[string]*v1.Pod
	count   map[string]int
}

func (p *Planner) newModelChoice(id gang.ID, levels gangview.Topology, turn gang.Turn,
	nodes []fwk.NodeInfo) *modelChoice {
	m := &modelChoice{planner: p, id: id, levels: levels, turn: turn, nodes: nodes, classes: map[string]*v1.Pod{},
		count: map[string]int{}}
	for i := range turn.Members {
		member := &turn.Members[i]
		m.count[member.Class]++
		if m.count[member.Class] > 1 {
			continue
		}
		if pod := p.Pod(member.Ref); pod != nil && m.planner.Models.mayUse(pod) {
			m.classes[member.Class] = pod
		}
	}
	return m
}

// used counts the members by the model that a plan gives them, those that hold a place already included.
func (m *modelChoice) used(a *Plan, class string) map[string]int {
	used := map[string]int{}
	classOf := make(map[gang.UID]string, len(m.turn.Members))
	for i := range m.turn.Members {
		classOf[m.turn.Members[i].UID] = m.turn.Members[i].Class
	}
	for _, placed := range a.Assignments {
		of := classOf[placed.UID]
		if m.classes[of] != nil && (class == "" || class == of) {
			if model := m.planner.Models.byName(a.lister, placed.Node); model != "" {
				used[model]++
			}
		}
	}
	if class == "" && m.turn.Held > 0 {
		for model, n := range m.planner.heldModels(m.id, a.lister) {
			used[model] += n
		}
	}
	return used
}

// heldModels counts the members that hold a place by the model of their GPUs.
func (s *Sources) heldModels(id gang.ID, nodes fwk.NodeInfoLister) map[string]int {
	at := s.Ledger.Nodes(id)
	for _, ref := range s.Ledger.Members(id) {
		if pod := s.Pod(ref); pod != nil && pod.Spec.NodeName != "" && !s.Models.mayUse(pod) {
			at[pod.Spec.NodeName]--
		}
	}
	held := map[string]int{}
	for name, n := range at {
		if n <= 0 {
			continue
		}
		if model := s.Models.byName(nodes, name); model != "" {
			held[model] += n
		}
	}
	return held
}

// unify returns a plan like mixed on GPUs of one model, or if there is none one in which each class is on one model, as
// far as possible. Where it is not, it says so in the plan.
func (m *modelChoice) unify(w *Work, mixed *Plan) (*Plan, error) {
	if len(m.classes) == 0 || len(m.used(mixed, "")) < 2 {
		return mixed, nil
	}
	best := mixed
	try := func(byClass map[string]string) (bool, error) {
		only := &modelLimits{models: m.planner.Models, byClass: byClass}
		a, err := m.planner.arrangeOn(w, m.id, m.levels, m.turn, m.nodes, only)
		if err != nil {
			return false, err
		}
		a.Examined += best.Examined
		if !a.Feasible() || len(a.Assignments) < len(best.Assignments) {
			best.Examined = a.Examined
			return false, nil
		}
		best = a
		return true, nil
	}
	all := slices.Sorted(maps.Keys(m.classes))
	for _, model := range m.order(mixed, all) {
		same := map[string]string{}
		for _, class := range all {
			same[class] = model
		}
		if done, err := try(same); err != nil || done {
			return best, err
		}
	}
	// Roles may need different models. The largest first.
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(m.count[b], m.count[a]) })
	limits := map[string]string{}
	for _, class := range all {
		if len(all) == 1 || m.count[class] == 1 || len(m.used(best, class)) < 2 {
			continue
		}
		for _, model := range m.order(best, []string{class}) {
			with := maps.Clone(limits)
			with[class] = model
			done, err := try(with)
			if err != nil {
				return nil, err
			}
			if done {
				limits = with
				break
			}
		}
	}
	best.Mixed = m.describe(best)
	return best, nil
}

// mostModels bounds the models on which a gang is tried, at the cost of a dry run each.
const mostModels = 6

// order returns the models on which all members of the classes may fit by the account of the cluster: first one that
// members of the gang are on already, then as the profile scores their best nodes.
func (m *modelChoice) order(a *Plan, classes []string) []string {
	slots := map[string]map[string]int{}
	for _, class := range classes {
		slots[class] = map[string]int{}
		key := m.planner.Capacity.Acquire(m.classes[class])
		m.planner.Capacity.Each(key, func(node *v1.Node, now, _ int) {
			if now > 0 {
				slots[class][strings.ToLower(m.planner.Models.model(node))] += now
			}
		})
		m.planner.Capacity.Release(key)
	}
	score := map[string]int64{}
	for _, class := range classes {
		for _, c := range a.Classes[class].scored {
			model := m.planner.Models.model(a.Nodes[c.node].Node())
			if best, known := score[model]; !known || c.scores.TotalScore > best {
				score[model] = c.scores.TotalScore
			}
		}
	}
	held := m.planner.heldModels(m.id, a.lister)
	var models []string
	for model := range score {
		fits := model != ""
		for _, class := range classes {
			fits = fits && slots[class][strings.ToLower(model)] >= m.count[class]
		}
		if fits {
			models = append(models, model)
		}
	}
	slices.SortFunc(models, func(a, b string) int {
		return cmp.Or(cmp.Compare(held[b], held[a]), cmp.Compare(score[b], score[a]), cmp.Compare(a, b))
	})
	return models[:min(len(models), mostModels)]
}

// describe says on which models the members are, the most members first; empty if all members of each class are on one.
func (m *modelChoice) describe(a *Plan) string {
	several := len(m.classes) == 1
	for class := range m.classes {
		several = several || len(m.used(a, class)) > 1
	}
	used := m.used(a, "")
	if !several || len(used) < 2 {
		return ""
	}
	total := 0
	models := slices.SortedFunc(maps.Keys(used), func(a, b string) int {
		return cmp.Or(cmp.Compare(used[b], used[a]), cmp.Compare(a, b))
	})
	said := make([]string, len(models))
	for i, model := range models {
		said[i] = fmt.Sprintf("%d on %s", used[model], model)
		total += used[model]
	}
	return fmt.Sprintf("the %s that use GPUs are on several models (%s): no model has room for all of them",
		plural.Of(total, "member"), strings.Join(said, ", "))
}
