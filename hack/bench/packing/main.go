package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"berth.dev/berth/pkg/gpu"
)

func main() {
	names := []string{"bestfit", "most", "fgd", "given", "learnt"}
	mk := map[string]func(f *family) func(*cluster) policy{
		"bestfit": func(*family) func(*cluster) policy { return func(*cluster) policy { return simple(bestFit) } },
		"most":    func(*family) func(*cluster) policy { return func(*cluster) policy { return simple(mostAllocated) } },
		"fgd": func(f *family) func(*cluster) policy {
			return func(*cluster) policy { return newFGD(f.kinds, f.weights) }
		},
		"given": func(f *family) func(*cluster) policy {
			return func(c *cluster) policy { return newOurs(gpu.DefaultWeights(), c, f.mix()) }
		},
		"learnt": func(f *family) func(*cluster) policy {
			return func(c *cluster) policy { return newOurs(gpu.DefaultWeights(), c, nil) }
		},
	}
	for n, w := range ablations() {
		mk[n] = func(f *family) func(*cluster) policy { return func(c *cluster) policy { return newOurs(w, c, nil) } }
	}
	mode := os.Args[1]
	if len(os.Args) > 3 {
		names = strings.Split(os.Args[3], ",")
	}
	fs := families()
	if mode == "openb" {
		fs = nil
		for _, v := range strings.Split(os.Args[2], ",") {
			f, err := openb("/work/shared/data/openb", v)
			if err != nil {
				panic(err)
			}
			fs = append(fs, *f)
		}
		os.Args[2] = ""
		mode = "fill"
	}
	type row struct{ o []outcome }
	rows := make([]row, len(fs))
	sem := make(chan bool, 2)
	var wg sync.WaitGroup
	seeds := 4.0
	fmt.Sscan(os.Getenv("SEEDS"), &seeds)
	for i := range fs {
		if len(os.Args) > 2 && !strings.Contains(fs[i].name, os.Args[2]) {
			continue
		}
		rows[i].o = make([]outcome, len(names))
		for j, n := range names {
			wg.Add(1)
			sem <- true
			go func() {
				defer func() { <-sem; wg.Done() }()
				var s outcome
				for seed := range uint64(seeds) {
					var o outcome
					switch mode {
					case "fill":
						o = fill(&fs[i], mk[n](&fs[i]), seed)
					default:
						var l float64
						fmt.Sscan(mode, &l)
						o = churn(&fs[i], mk[n](&fs[i]), steady(l), seed)
					}
					s.Allocated += o.Allocated / seeds
					s.BigRefused += o.BigRefused / seeds
					s.NodesHalf += o.NodesHalf / seeds
				}
				rows[i].o[j] = s
			}()
		}
	}
	wg.Wait()
	fmt.Printf("%-55s", "")
	for _, n := range names {
		fmt.Printf(" %20s", n)
	}
	fmt.Println()
	worst := map[string][]float64{}
	for i := range fs {
		if rows[i].o == nil {
			continue
		}
		bestA := max(rows[i].o[0].Allocated, rows[i].o[2].Allocated)
		bestN := rows[i].o[0].NodesHalf
		for j := range names {
			worst[names[j]] = append(worst[names[j]], 100*(rows[i].o[j].Allocated-bestA))
			worst[names[j]+" nodes"] = append(worst[names[j]+" nodes"], 100*(rows[i].o[j].NodesHalf/bestN-1))
		}
		fmt.Printf("%-55s", fs[i].name)
		for _, o := range rows[i].o {
			fmt.Printf(" %6.2f %5.2f %6.1f ", 100*o.Allocated, 100*o.BigRefused, o.NodesHalf)
		}
		fmt.Println()
	}
	for _, n := range names {
		a, h := worst[n], worst[n+" nodes"]
		slices.Sort(a)
		slices.Sort(h)
		over, sum := 0, 0.0
		for _, x := range a {
			if x < -0.3 {
				over++
			}
			sum += x
		}
		more := 0
		for _, x := range h {
			if x > 3 {
				more++
			}
		}
		fmt.Printf("%-10s allocated: mean %.3f, worst %.2f %.2f %.2f, %d of %d below by 0.3; nodes: worst %.1f%% %.1f%%, %d over 3%%\n", n, sum/float64(len(a)), a[0], a[1], a[2], over, len(a), h[len(h)-1], h[len(h)-2], more)
	}
}
