package advise

import (
	"fmt"
	"io"
	"strings"

	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/screen/tables"
)

// WriteTable prints the advice as text and tables.
func (a *Advice) WriteTable(out io.Writer) error {
	var b strings.Builder
	screen := tables.ScreenOf(out)
	fmt.Fprintf(&b, "%s, %s; configuration %s\n", plural.Of(a.Nodes, "node"), plural.Of(a.PendingPods, "pending pod"),
		a.Configuration)
	a.writePending(&b, screen)
	a.writeGiveBack(&b, screen)
	a.writeNewNodes(&b, screen)
	for _, l := range a.Limits {
		fmt.Fprintf(&b, "cut short: %s\n", l)
	}
	for _, n := range a.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	_, err := io.WriteString(out, screen.Wrap(b.String()))
	return err
}

func (a *Advice) writePending(b *strings.Builder, screen tables.Screen) {
	b.WriteString("\nPending work\n")
	if len(a.Pending) == 0 {
		b.WriteString("  the scheduler starts all work that waits for it without help\n")
	}
	for _, p := range a.Pending {
		fmt.Fprintf(b, "  %s: %s\n", p.Unit, p.Verdict)
		switch {
		case p.Plan != nil:
			b.WriteString(p.Plan.table(screen) + p.Plan.commands())
		case p.Why != "":
			fmt.Fprintf(b, "    the scheduler says: %s\n", p.Why)
		}
	}
}

// table shows the moves and the pods that start.
func (p *Plan) table(screen tables.Screen) string {
	t := tables.New(screen, tables.Column{Name: "step"}, tables.Column{Name: "pod"}, tables.Column{Name: "from"},
		tables.Column{Name: "to"}, tables.Column{Name: "loses", Number: true})
	for i, m := range p.Moves {
		for _, pod := range m.Pods {
			t.Row(fmt.Sprintf("move %d", i+1), m.Namespace+"/"+pod.Name, pod.From, pod.To,
				fmt.Sprintf("%.1f GPU hours", pod.LostGPUMinutes/60))
		}
	}
	for _, s := range p.Starts {
		t.Row("starts", s.Namespace+"/"+s.Name, "", s.Node, "")
	}
	return t.String()
}

// commands are the kubectl commands of the plan.
func (p *Plan) commands() string {
	var b strings.Builder
	nodes := strings.Join(p.Cordon, " ")
	fmt.Fprintf(&b, "    kubectl cordon %s\n", nodes)
	for _, m := range p.Moves {
		fmt.Fprintf(&b, "    kubectl delete pod -n %s", m.Namespace)
		for _, pod := range m.Pods {
			b.WriteString(" " + pod.Name)
		}
		b.WriteString("\n")
	}
	b.WriteString("    # wait until each pod that replaces them has a node or is unschedulable\n")
	fmt.Fprintf(&b, "    kubectl uncordon %s\n", nodes)
	return b.String()
}

func (a *Advice) writeGiveBack(b *strings.Builder, screen tables.Screen) {
	if len(a.GiveBack) == 0 {
		return
	}
	sum := price.MicroDollars(0)
	t := tables.New(screen, tables.Column{Name: "node"}, tables.Column{Name: "saves", Number: true},
		tables.Column{Name: "moves"})
	for _, g := range a.GiveBack {
		var moves []string
		for _, m := range g.Plan.Moves {
			for _, pod := range m.Pods {
				moves = append(moves, m.Namespace+"/"+pod.Name+" to "+pod.To)
			}
		}
		if len(moves) == 0 {
			moves = []string{"nothing: it is not in use"}
		}
		t.Row(g.Node, dollars(g.PriceMicroDollarsPerHour), strings.Join(moves, ", "))
		sum = sum.Plus(price.MicroDollars(g.PriceMicroDollarsPerHour))
	}
	fmt.Fprintf(b, "\nNodes to give back, together %s\n%s", dollars(int64(sum)), t)
}

// dollars writes a price an hour.
func dollars(micro int64) string {
	if micro == 0 {
		return "no price"
	}
	return fmt.Sprintf("$%.2f/h", price.MicroDollars(micro).Dollars())
}

func (a *Advice) writeNewNodes(b *strings.Builder, screen tables.Screen) {
	if len(a.NewNodes) == 0 {
		return
	}
	t := tables.New(screen, tables.Column{Name: "more", Number: true}, tables.Column{Name: "of"},
		tables.Column{Name: "like"}, tables.Column{Name: "price of each", Number: true},
		tables.Column{Name: "pods", Number: true}, tables.Column{Name: "would start"})
	for _, n := range a.NewNodes {
		var units []string
		for _, u := range n.Units {
			units = append(units, u.String())
		}
		if len(units) == 0 {
			units = []string{"nothing"}
		}
		t.Row(n.Count, n.Kind, n.Like, dollars(n.PriceMicroDollarsPerHour), len(n.Starts), strings.Join(units, ", "))
	}
	b.WriteString("\nWhat more nodes would let start\n" + t.String())
}
