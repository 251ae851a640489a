package address

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Plan is which addresses a pod can have on which nodes, at one time. It is not safe for concurrent changes; Clone it.
type Plan struct {
	// own are the reservations of the pod; if there are any, there is no pool, and each is a subnet.
	own  []Reservation
	pool *Pool
	// elsewhere is the reason against nodes where no subnet is routable. It is the same for thousands of nodes.
	elsewhere string
	// domains are where the subnets are routable. free is how many addresses of each neither other pods have nor planned
	// pods take.
	domains []Domain
	free    []int64
	// atStart is free before any pod was planned.
	atStart []int64
	// planned are other pods that are to take an address, with the subnet that it is of.
	planned map[string]int
}

// Plan computes which addresses the pod can have, or returns why it can have none.
func (l *Ledger) Plan(ask *Ask) (*Plan, string) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.plan(ask)
}

func (l *Ledger) plan(ask *Ask) (*Plan, string) {
	// The binding of a deleted pod may still reserve an address under its name, and the next pod is to get that one.
	for a, p := range l.promises {
		if p.UID != ask.UID && (p.Pod == ask.Pod || l.reserved[a].Pod == ask.Pod) {
			return nil, fmt.Sprintf("address %s is promised to an earlier pod, whose binding has not ended", a)
		}
	}
	if own := l.byPod[ask.Pod]; len(own) > 0 {
		plan := &Plan{}
		var texts []string
		for _, a := range own {
			h := l.reserved[a]
			plan.own, plan.domains, plan.free = append(plan.own, h), append(plan.domains, h.Domain), append(plan.free, 1)
			texts = append(texts, fmt.Sprintf("%s (%s)", a, h.Domain))
		}
		plan.elsewhere = "node(s) where the pod's address is not routable: " + strings.Join(texts, ", ")
		return plan, ""
	}
	pool, reason := l.pool(ask)
	if reason != "" {
		return nil, reason
	}
	free := pool.free()
	return &Plan{pool: pool, elsewhere: "node(s) outside the domains of pool " + pool.Name, domains: pool.Domains,
		free: free, atStart: slices.Clone(free)}, ""
}

// Clone returns a plan of its own.
func (p *Plan) Clone() *Plan {
	c := *p
	c.free, c.planned = slices.Clone(p.free), maps.Clone(p.planned)
	return &c
}

// none is no subnet.
const none = -1

// subnet returns the subnet that the pod gets an address of on a node with the labels: the first of those that are
// routable there with a free address. If none has one, it is the first of them, and none if there are none.
func (p *Plan) subnet(labels map[string]string) (subnet int, free bool) {
	subnet = none
	key, value := "", ""
	for i, d := range p.domains {
		// Most pools have one key, which is looked up once.
		if d.Key != key {
			key, value = d.Key, labels[d.Key]
		}
		if d.Value != value {
			continue
		}
		if p.free[i] > 0 {
			return i, true
		}
		if subnet == none {
			subnet = i
		}
	}
	return subnet, false
}

// Refuses returns why the pod can have no address on a node with the labels; empty if it can. planned reports that the
// reason is other pods that are planned and may still go elsewhere.
func (p *Plan) Refuses(labels map[string]string) (reason string, planned bool) {
	subnet, free := p.subnet(labels)
	switch {
	case free:
		return "", false
	case subnet == none:
		return p.elsewhere, false
	}
	if p.plannedFree(labels) {
		return fmt.Sprintf("pool %s has no free address here but those planned for other pods", p.pool.Name), true
	}
	where := ""
	if d := p.domains[subnet]; d.Key != "" {
		where = " in domain " + d.String()
	}
	return fmt.Sprintf("pool %s has no free address%s", p.pool.Name, where), false
}

// plannedFree reports whether a pod on a node with the labels could have an address if no other pods were planned.
func (p *Plan) plannedFree(labels map[string]string) bool {
	for i, d := range p.domains {
		if p.atStart[i] > 0 && d.Contains(labels) {
			return true
		}
	}
	return false
}

// Add counts another pod that is to run on a node with the labels. Pods that have an address, or ask for another pool,
// take nothing. A pod that is counted already is counted there instead.
func (p *Plan) Add(l *Ledger, other *Ask, labels map[string]string) {
	if p.pool == nil || other.Pool != p.pool.Name || l.counted(other) {
		return
	}
	p.Remove(other.UID)
	subnet, _ := p.subnet(labels)
	if subnet == none {
		return
	}
	if p.planned == nil {
		p.planned = map[string]int{}
	}
	p.planned[other.UID] = subnet
	p.free[subnet]--
}

// counted reports whether the pod has an address, or is promised one.
func (l *Ledger) counted(ask *Ask) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	_, promised := l.promised(ask.UID)
	return promised || len(l.byPod[ask.Pod]) > 0
}

// Remove takes back what Add has counted. A pod that has its address keeps it: whether the address is free when the pod
// is gone is for its release policy to say.
func (p *Plan) Remove(uid string) {
	if subnet, counted := p.planned[uid]; counted {
		delete(p.planned, uid)
		p.free[subnet]++
	}
}
