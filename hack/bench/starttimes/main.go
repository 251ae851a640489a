// Command starttimes compares by simulation what may be kept for waiting gangs, and who may use it until they start: nothing,
// the nodes on which the fewest pods have to end, and nodes by start times, with run times that are known, declared, limited
// or learned. It counts GPUs and nodes only, and uses the packages that the scheduler uses. The table scheduler replays
// the beginnings of the traces with the scheduler instead.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	data := flag.String("data", "../shared/data", "folder of the traces")
	tables := flag.String("tables", "policies,loads,settings,others", "what to print, separated by commas; deadlines and scheduler are also known")
	only := flag.String("only", "", "simulate only the clusters whose name has this in it")
	jobs := flag.Int("jobs", 1500, "replay only the first jobs of a trace with the scheduler, that many")
	skip := flag.Int("skip", 0, "number of jobs to leave out before the first")
	config := flag.String("config", "manifests/base/scheduler-config.yaml",
		"scheduler configuration without args of Coscheduling, for the scheduler")
	seeds := flag.Int("seeds", 3, "how many times to simulate each case, with other arrivals within two hours; the figures are means")
	flag.Parse()
	b := &bench{data: *data, only: *only, config: *config, seeds: *seeds, jobs: *jobs, skip: *skip, out: os.Stdout, done: map[string]figures{}}
	for _, name := range strings.Split(*tables, ",") {
		table, known := map[string]func() error{"policies": b.policies, "loads": b.loads, "settings": b.settings, "others": b.others, "deadlines": b.deadlines,
			"scheduler": b.scheduler}[name]
		if !known {
			fmt.Fprintf(os.Stderr, "starttimes: no table %q\n", name)
			os.Exit(2)
		}
		if err := table(); err != nil {
			fmt.Fprintln(os.Stderr, "starttimes:", err)
			os.Exit(1)
		}
	}
}

// bench simulates cases and prints tables.
type bench struct {
	data, only, config string
	seeds, jobs, skip  int
	out                io.Writer
	// done holds what was simulated, by cluster and policy.
	done map[string]figures
}

// scenario is a load on a number of nodes.
type scenario struct {
	name  string
	nodes int
	read  func() ([]job, error)
}

// trace returns a scenario of a file.
func (b *bench) trace(file string, nodes int) scenario {
	return scenario{fmt.Sprintf("%s on %d", filepath.Base(file), nodes), nodes, func() ([]job, error) {
		return readTrace(filepath.Join(b.data, file+".csv"))
	}}
}

// figures returns the means over all seeds.
func (b *bench) figures(s *scenario, p *variant) (figures, error) {
	key := s.name + "\x00" + p.name
	if f, known := b.done[key]; known {
		return f, nil
	}
	jobs, err := s.read()
	if err != nil {
		return figures{}, err
	}
	var mean figures
	for seed := range b.seeds {
		moved := moveArrivals(jobs, uint64(seed))
		simulate(moved, s.nodes, p.make())
		mean.add(measure(moved), 1/float64(b.seeds))
	}
	b.done[key] = mean
	return mean, nil
}

// table prints one row for each scenario and variant.
func (b *bench) table(title string, scenarios []scenario, variants []variant) error {
	fmt.Fprintf(b.out, "\n%s\n\n| cluster | policy | gangs: mean wait | p50 | p95 | max | others | weighted by GPUs | slowdown | told interval | error p50 | p95 | misses |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n", title)
	for i := range scenarios {
		s := &scenarios[i]
		if !strings.Contains(s.name, b.only) {
			continue
		}
		first := s.name
		for k := range variants {
			f, err := b.figures(s, &variants[k])
			if err != nil {
				return err
			}
			told := "– | – | –"
			if f.error95 > 0 {
				told = fmt.Sprintf("%.0f%% | %.0f | %.0f", 100*f.told, f.error50, f.error95)
			}
			missed := "–"
			if f.due > 0 {
				missed = fmt.Sprintf("%.1f%%", 100*f.missed)
			}
			fmt.Fprintf(b.out, "| %s | %s | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.1f | %s | %s |\n", first, variants[k].name,
				f.gangs, f.p50, f.p95, f.max, f.others, f.weighted, f.slowdown, told, missed)
			first = ""
		}
	}
	return nil
}
