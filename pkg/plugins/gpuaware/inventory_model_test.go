package gpuaware

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"pgregory.net/rapid"
)

// schedule runs the scheduling cycle of a pod and checks what the plugin says of each node.
func (m *model) schedule(p *modelPod) {
	h := m.h
	if err := h.Cache.UpdateSnapshot(h.logger, h.Snapshot); err != nil {
		m.t.Fatal(err)
	}
	state := framework.NewCycleState()
	if _, status := h.plugin.PreFilter(h.ctx, state, p.object, nil); !status.IsSuccess() {
		m.t.Fatalf("PreFilter of %s: %v", p.object.Name, status)
	}
	var feasible []*modelNode
	for _, n := range m.nodes {
		info, err := h.Snapshot.NodeInfos().Get(n.name)
		if err != nil {
			m.t.Fatal(err)
		}
		status := h.plugin.Filter(h.ctx, state, p.object, info)
		if fits, sure := m.fits(n, p.ask); m.quiet() && sure && fits != status.IsSuccess() {
			m.t.Fatalf("%s, which asks for %+v, fits %s: %t, Filter says %v\n%s", p.object.Name, p.ask, n.name, fits, status, m)
		}
		if status.IsSuccess() {
			feasible = append(feasible, n)
		}
	}
	if len(feasible) == 0 {
		return
	}
	n := feasible[m.draw(len(feasible), "node")]
	p.state, p.assumed, p.step = state, p.object.DeepCopy(), reserved
	p.assumed.Spec.NodeName = n.name
	if err := h.Cache.AssumePod(h.logger, p.assumed); err != nil {
		m.t.Fatal(err)
	}
	if status := h.plugin.Reserve(h.ctx, state, p.assumed, n.name); !status.IsSuccess() {
		if m.quiet() {
			m.t.Fatalf("Reserve of %s on %s: %v\n%s", p.object.Name, n.name, status, m)
		}
		m.giveUp(p)
		return
	}
	if n.kind.owned() && p.ask.resource != migResource {
		m.promised(p, n)
	}
}

// giveUp ends the cycle of a pod that is not to be bound.
func (m *model) giveUp(p *modelPod) {
	m.h.plugin.Unreserve(m.h.ctx, p.state, p.assumed, p.assumed.Spec.NodeName)
	// The cache does not forget a pod that it knows to be bound.
	_ = m.h.Cache.ForgetPod(m.h.logger, p.assumed)
	p.state, p.assumed = nil, nil
	if p.step != bound {
		p.step, p.holds = pending, nil
	}
}

// advance takes a pod that was promised devices one step further, or fails to.
func (m *model) advance(p *modelPod) {
	h, node := m.h, p.assumed.Spec.NodeName
	if m.draw(8, "fails") == 0 || m.pods[p.object.UID] != p {
		m.steps["a binding fails"]++
		m.giveUp(p)
		return
	}
	if p.step == reserved {
		if _, status := h.plugin.PreBindPreFlight(h.ctx, p.state, p.assumed, node); status.IsSuccess() {
			if status := h.plugin.PreBind(h.ctx, p.state, p.assumed, node); !status.IsSuccess() {
				m.t.Fatalf("PreBind of %s on %s: %v", p.object.Name, node, status)
			}
			m.write(p, func(*v1.Pod) {})
		}
		p.step = told
		if m.draw(6, "fails") == 0 {
			m.steps["a binding fails"]++
			m.giveUp(p)
			return
		}
		if p.object.Annotations["hami.io/bind-phase"] == "" && m.draw(3, "the binding takes its time") == 0 {
			return // a pod that had the lock of its node would keep others from it
		}
	}
	lost := m.draw(8, "the answer is lost") == 0
	p.step = bound
	m.write(p, func(pod *v1.Pod) { pod.Spec.NodeName = node })
	if lost {
		m.steps["an answer is lost"]++
		m.giveUp(p)
	}
	p.state, p.assumed = nil, nil
	m.serve(node)
}

// serve is what HAMi's device plugin does at the end: it gives back the lock of the node.
func (m *model) serve(node string) {
	n := m.node(node)
	if err := m.client.Tracker().Update(v1.SchemeGroupVersion.WithResource("nodes"), n.object.DeepCopy(), ""); err != nil {
		m.t.Fatal(err)
	}
}

// changeNode lets a node lose, gain, replace or list its GPUs in another order.
func (m *model) changeNode(n *modelNode) {
	switch what := m.draw(4, "what changes"); {
	case what == 0 && len(n.gpus) > 1:
		at := len(n.gpus) - 1
		if n.kind == hami {
			at = m.draw(len(n.gpus), "GPU")
		}
		n.gpus = slices.Delete(slices.Clone(n.gpus), at, at+1)
	case what == 1 && len(n.gpus) < 6:
		n.gpus = append(slices.Clone(n.gpus), n.gpuName(len(n.gpus)))
	case what == 2 && n.kind == hami:
		at := m.draw(len(n.gpus), "GPU")
		n.gpus = slices.Concat(n.gpus[at:], n.gpus[:at])
	case what == 2 && n.kind == mig:
		n.migs = m.draw(7, "slices")
	case what == 3 && n.kind == hami:
		name := n.gpus[m.draw(len(n.gpus), "GPU")]
		n.sick[name] = !n.sick[name]
	}
	n.object = n.build()
	m.serve(n.name)
	m.storeNode(n)
	h, after := m.h, n.object
	m.nodesToCache = append(m.nodesToCache, func() {
		h.Cache.UpdateNode(h.logger, n.seen, after)
		n.seen = after
	})
}

// tamper edits what a pod says of its GPUs.
func (m *model) tamper(p *modelPod) {
	edits := []func(*v1.Pod){
		func(o *v1.Pod) { o.Annotations = nil },
		func(o *v1.Pod) { o.Annotations = with(strs{}, "alibabacloud.com/gpu-milli", "1") },
		func(o *v1.Pod) { o.Annotations = with(strs{}, "gpu-fraction", "nonsense") },
		func(o *v1.Pod) { o.Annotations = with(o.Annotations, "alibabacloud.com/gpu-index", "3") },
		func(o *v1.Pod) { o.Annotations = with(o.Annotations, "berth.dev/gpu-assigned", "{}") },
		func(o *v1.Pod) {
			o.Annotations = with(o.Annotations, "hami.io/vgpu-devices-allocated", "GPU-1,NVIDIA,1,0:;")
		},
	}
	m.write(p, edits[m.draw(len(edits), "edit")])
}

func (m *model) step() {
	exists := func(*modelPod) bool { return true }
	switch what := m.draw(20, "step"); what {
	case 0, 1, 2:
		m.steps["a pod comes"]++
		m.add(m.create())
	case 3, 4, 5, 6, 7:
		if p := m.some(func(p *modelPod) bool { return p.step == pending && !p.foreign }); p != nil {
			m.steps["a pod is tried"]++
			m.schedule(p)
		}
	case 8, 9, 10:
		if p := m.some(func(p *modelPod) bool { return p.state != nil }); p != nil {
			m.steps["a pod is bound"]++
			m.advance(p)
		}
	case 11, 12, 13:
		if p := m.some(exists); p != nil && len(m.pods) > 4 {
			m.steps["a pod goes"]++
			m.remove(p)
		}
	case 14:
		m.steps["a node changes"]++
		m.changeNode(m.nodes[m.draw(len(m.nodes), "node")])
	case 15:
		if p := m.some(func(p *modelPod) bool { return p.step == bound && !p.foreign }); p != nil {
			m.steps["a pod is edited"]++
			m.tamper(p)
		}
	case 16:
		m.intrude()
	case 17:
		if m.draw(5, "restart") == 0 {
			m.steps["the scheduler restarts"]++
			m.start()
		}
	case 18, 19:
		for _, queue := range []*[]func(){&m.toPlugin, &m.toCache, &m.nodesToCache} {
			m.deliver(queue, m.draw(len(*queue)+1, "events"))
		}
	}
	// Half of the time no part is late.
	if m.draw(2, "late") == 0 {
		m.settle()
	}
	m.compare()
}

// intrude lets another scheduler put a pod on a node: a new one by its spec, or one that waits and may carry what this
// scheduler wrote before a binding failed. On the node for which that was it is as good as bound.
func (m *model) intrude() {
	n := m.nodes[m.draw(len(m.nodes), "node")]
	switch m.draw(6, "of another scheduler") {
	case 0, 1:
		m.steps["a pod comes by spec.nodeName"]++
		p := m.create()
		p.foreign, p.step = true, bound
		p.object.Spec.NodeName = n.name
		m.add(p)
	case 2, 3:
		p := m.some(func(p *modelPod) bool { return p.step == pending })
		if p == nil {
			return
		}
		for _, c := range m.stored(p).Status.Conditions {
			if strings.Contains(c.Message, n.name) {
				return
			}
		}
		m.steps["another scheduler binds a pod"]++
		p.foreign, p.step = true, bound
		m.write(p, func(o *v1.Pod) { o.Spec.NodeName = n.name })
	}
}

// remove deletes a pod. One that is on its way is turned away when it comes to bind it.
func (m *model) remove(p *modelPod) {
	if err := m.client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), p.object.Namespace,
		p.object.Name); err != nil {
		m.t.Fatal(err)
	}
	delete(m.pods, p.object.UID)
	m.tell(p.object, nil)
	if p.state != nil {
		m.giveUp(p)
	}
}

// TestInventoryAgainstModel plays random histories of pods, nodes and restarts: no device is promised beyond what it
// is, and what the plugin counts is what pods hold, however they are edited and however late it hears of them.
func TestInventoryAgainstModel(t *testing.T) {
	t.Parallel()
	steps, total := map[string]int{}, 0
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(rt, t, steps)
		defer func() { m.stop() }()
		for range rapid.IntRange(20, 150).Draw(rt, "steps") {
			m.step()
			total++
		}
		m.settle()
		m.compare()
		m.start()
		m.settle()
		m.compare()
	})
	t.Logf("%d steps: %v", total, steps)
	for _, what := range []string{"a pod is tried", "a pod is bound", "a binding fails", "an answer is lost",
		"a pod is edited",
		"a pod comes by spec.nodeName", "another scheduler binds a pod", "a node changes", "the scheduler restarts"} {
		if steps[what] == 0 {
			t.Errorf("it never happened that %s: the model does not do what it is for", what)
		}
	}
}

// with returns annotations and one more.
func with(annotations strs, key, value string) strs {
	all := strs{key: value}
	for k, v := range annotations {
		if k != key {
			all[k] = v
		}
	}
	return all
}
