package live

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// Algorithm is what a scheduler counts of its scheduling algorithm: seconds and cycles of all, and seconds of the
// extension points.
type Algorithm struct {
	Seconds, Cycles        float64
	PointSeconds           map[string]float64
	CacheHits, CacheMisses float64
}

// Algorithm is what the scheduler counted of its algorithm.
func (u *Use) Algorithm() Algorithm {
	all := u.Histogram(AlgorithmSeconds, "")
	a := Algorithm{all.Sum, all.Count, map[string]float64{},
		u.Grew("berth_gpu_packing_cache_hits_total"), u.Grew("berth_gpu_packing_cache_misses_total")}
	for _, point := range AlgorithmPoints() {
		a.PointSeconds[point] = u.Histogram("scheduler_framework_extension_point_duration_seconds", "extension_point",
			point).Sum
	}
	a.PointSeconds[batching] = u.Histogram("scheduler_batch_rescore_duration_seconds", "").Sum
	return a
}

// MillisPerCycle is how long the algorithm took for a pod.
func (a Algorithm) MillisPerCycle() float64 { return 1000 * a.Seconds / a.Cycles }

// Percent is the part of the algorithm's time that an extension point took.
func (a Algorithm) Percent(point string) float64 { return 100 * a.PointSeconds[point] / a.Seconds }

// points are the extension points of the algorithm, and the frame within which each of their calls is.
var points = []struct{ name, frame string }{
	{"PreFilter", ").RunPreFilterPlugins"},
	{"Filter", ").RunFilterPlugins"},
	{"PreScore", ").RunPreScorePlugins"},
	{"Score", ").RunScorePlugins"},
	{batching, ").rescoreHintedNode"},
}

// batching is not an extension point: of a run of identical pods only the node of the last is scored again, and all are
// normalized.
const batching = "batch rescoring"

// AlgorithmPoints are the extension points of the algorithm in their order.
func AlgorithmPoints() []string {
	var names []string
	for _, p := range points {
		names = append(names, p.name)
	}
	return names
}

// Part is one plugin's part of the algorithm's time at one extension point.
type Part struct {
	Plugin  string  `json:"plugin"`
	Point   string  `json:"point"`
	Percent float64 `json:"percent"`
}

// Parts parts the time of each extension point by the CPU profile that the scheduler made of itself in the same time.
func (a Algorithm) Parts(samples *profile.Profile) []Part {
	var parts []Part
	for _, p := range points {
		total, plugins := within(samples, p.frame)
		if total == 0 {
			continue
		}
		for plugin, n := range plugins {
			parts = append(parts, Part{plugin, p.name, a.Percent(p.name) * float64(n) / float64(total)})
		}
	}
	slices.SortFunc(parts, func(a, b Part) int {
		return cmp.Or(cmp.Compare(b.Percent, a.Percent), cmp.Compare(a.Plugin, b.Plugin))
	})
	return parts
}

// pluginMethod finds the package of a plugin in the name of its method.
var pluginMethod = regexp.MustCompile(
	`/plugins/([a-z]+)\.\(\*[A-Za-z]+\)\.(PreFilter|Filter|PreScore|Score|NormalizeScore)$`)

// within counts the CPU time of samples within the frame, in all and in each plugin's method.
func within(samples *profile.Profile, frame string) (total int64, plugins map[string]int64) {
	plugins = map[string]int64{}
	for _, s := range samples.Sample {
		plugin, inside := "", false
		// A stack begins with its innermost frame.
		for _, location := range s.Location {
			for _, l := range location.Line {
				if m := pluginMethod.FindStringSubmatch(l.Function.Name); m != nil {
					plugin = m[1]
				}
				inside = inside || strings.Contains(l.Function.Name, frame)
			}
		}
		if !inside {
			continue
		}
		cpu := s.Value[len(s.Value)-1]
		total += cpu
		if plugin != "" {
			plugins[plugin] += cpu
		}
	}
	return total, plugins
}
