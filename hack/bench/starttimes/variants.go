package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/pkg/starttime"
)

// variant is a policy with a name.
type variant struct {
	name string
	make func() policy
}

func byTime(name string, k knowledge, s starttime.Settings) variant {
	return variant{name, func() policy { return newTimed(k, s) }}
}

// easy is backfilling as Lifka describes it: one reservation, and only what is gone by then enters.
func easy() starttime.Settings {
	return starttime.Settings{Held: 1, Ready: 0.5, Exchange: 1, Enter: 0.9, Sure: 0.99, Slips: math.MaxInt}
}

func baselines() []variant {
	return []variant{
		{"nothing kept", func() policy { return none{} }},
		{"fewest pods, 1 h without progress", func() policy { return newToday(time.Hour) }},
		{"fewest pods, 6 h without progress", func() policy { return newToday(6 * time.Hour) }},
	}
}

func (b *bench) loaded() []scenario {
	return []scenario{
		b.trace("itp/cluster02", 16), b.trace("itp/cluster02", 13), b.trace("itp/cluster02", 11),
		b.trace("itp/cluster03", 26), b.trace("itp/cluster03", 21), b.trace("itp/cluster03", 19),
		b.trace("itp/cluster07", 46), b.trace("itp/cluster07", 38), b.trace("itp/cluster07", 34),
		b.trace("philly/mix1", 198), b.trace("philly/mix1", 163), b.trace("philly/mix1", 146),
	}
}

// byDeadline has the jobs wait in the order of their deadlines, those without one last.
type byDeadline struct{ policy }

func (p byDeadline) plan(c *cluster) {
	due := func(j *job) float64 {
		if j.due == 0 {
			return math.Inf(1)
		}
		return j.submit + j.due
	}
	slices.SortStableFunc(c.queue, func(a, b *job) int { return cmp.Or(cmp.Compare(due(a), due(b)), cmp.Compare(a.submit, b.submit)) })
	p.policy.plan(c)
}

// deadlines compares orders of the queue where more is asked for than there is.
func (b *bench) deadlines() error {
	var all []variant
	for _, v := range append(baselines()[:2], byTime("true run times", perfect(1), starttime.Defaults()),
		byTime("learned", learned(), starttime.Defaults())) {
		all = append(all, v, variant{v.name + ", earliest deadline first", func() policy { return byDeadline{v.make()} }})
	}
	return b.table("Deadlines", []scenario{b.trace("philly/slo", 120)}, all)
}

func (b *bench) policies() error {
	conservative := easy()
	conservative.Held = 8
	slack := conservative
	slack.Slack, slack.Sure = 0.5, 0.95
	return b.table("Policies", []scenario{b.trace("itp/cluster02", 16), b.trace("itp/cluster02", 13), b.trace("itp/cluster03", 26)}, append(baselines(),
		byTime("EASY, true run times", perfect(1), easy()),
		byTime("EASY, 3 × the truth", perfect(3), easy()),
		byTime("EASY, learned", learned(), easy()),
		byTime("conservative, true run times", perfect(1), conservative),
		byTime("conservative, learned", learned(), conservative),
		byTime("conservative with slack, true run times", perfect(1), slack),
		byTime("defaults, true run times", perfect(1), starttime.Defaults()),
		byTime("defaults, learned", learned(), starttime.Defaults())))
}

func (b *bench) loads() error {
	return b.table("Loads", b.loaded(), append(baselines(), knowledges()...))
}

// knowledges are the defaults with all that may be known of run times.
func knowledges() []variant {
	s := starttime.Defaults()
	return []variant{
		byTime("true run times", perfect(1), s),
		byTime("declared truly", declared(1, 1, false), s),
		byTime("declared 0.2–1.2 × the truth", declared(0.2, 1.2, false), s),
		byTime("limits 1–5 × the truth", declared(1, 5, true), s),
		byTime("learned", learned(), s),
	}
}

func (b *bench) others() error {
	return b.table("Other loads", append(synthetic(), b.trace("philly/slo", 146), b.shuffled("itp/cluster02", 16), b.shuffled("itp/cluster03", 21)),
		append(baselines(), knowledges()...))
}

// settings compares the defaults with others: the geometric means over all clusters of the waits, as a part of those with the
// fewest pods and one hour.
func (b *bench) settings() error {
	fmt.Fprint(b.out, "\nSettings\n\n| setting | learned: gangs | others | weighted | worst | declared 0.2–1.2 ×: gangs | others | weighted | worst |\n|---|---|---|---|---|---|---|---|---|\n")
	base := baselines()[1]
	for _, c := range changes {
		row := []string{c.name}
		for _, k := range []struct {
			name string
			of   knowledge
		}{{"learned", learned()}, {"declared", declared(0.2, 1.2, false)}} {
			s := starttime.Defaults()
			c.to(&s)
			v := byTime(k.name+" "+c.name, k.of, s)
			var gangs, others, weighted, worst, n float64
			for _, at := range b.loaded()[:6] {
				if !strings.Contains(at.name, b.only) {
					continue
				}
				before, err := b.figures(&at, &base)
				if err != nil {
					return err
				}
				after, err := b.figures(&at, &v)
				if err != nil {
					return err
				}
				gangs += math.Log(after.gangs / before.gangs)
				others += math.Log(after.others / before.others)
				weighted += math.Log(after.weighted / before.weighted)
				worst = max(worst, after.weighted/before.weighted)
				n++
			}
			for _, v := range []float64{math.Exp(gangs / n), math.Exp(others / n), math.Exp(weighted / n), worst} {
				row = append(row, fmt.Sprintf("%.2f", v))
			}
		}
		fmt.Fprintf(b.out, "| %s |\n", strings.Join(row, " | "))
	}
	return nil
}

// changes are single departures from the defaults.
var changes = []struct {
	name string
	to   func(*starttime.Settings)
}{
	{"defaults", func(*starttime.Settings) {}},
	{"Held 1", func(s *starttime.Settings) { s.Held = 1 }},
	{"Held 4", func(s *starttime.Settings) { s.Held = 4 }},
	{"Ready 0.5", func(s *starttime.Settings) { s.Ready = 0.5 }},
	{"Exchange 1", func(s *starttime.Settings) { s.Exchange = 1 }},
	{"Enter 0.5", func(s *starttime.Settings) { s.Enter = 0.5 }},
	{"Enter 0.9", func(s *starttime.Settings) { s.Enter = 0.9 }},
	{"Slack 0", func(s *starttime.Settings) { s.Slack = 0 }},
	{"Slack 1", func(s *starttime.Settings) { s.Slack = 1 }},
	{"Seniority 1", func(s *starttime.Settings) { s.Seniority = 1 }},
	{"Seniority 0 (none)", func(s *starttime.Settings) { s.Seniority = 0 }},
	{"Slips 2", func(s *starttime.Settings) { s.Slips = 2 }},
	{"never firm", func(s *starttime.Settings) { s.Slips = math.MaxInt }},
}
