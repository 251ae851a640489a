// Package history reads from Prometheus who had GPUs, how busy they were and what they cost: a bill of the past out of
// the series that clusters keep anyway. The command showback calls it. The scheduler reads none of it.
package history

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/price"
	"berth.dev/berth/pkg/showback"
	"berth.dev/berth/pkg/signals"
)

// Series that make the history of use. The first is the scheduler's own, at /metrics/resources; the next two are of
// kube-state-metrics, for pods that the scheduler says nothing about.
const (
	metricPodRequest       = "kube_pod_resource_request"
	metricContainerRequest = "kube_pod_container_resource_requests"
	metricPodPhase         = "kube_pod_status_phase"
	metricGPUDevices       = "berth_gpu_devices"
	metricGPUCost          = "node_gpu_hourly_cost"
)

// Query says what to ask for.
type Query struct {
	From, To time.Time
	// Step is from one moment to the next.
	Step time.Duration
	// By says by what pods are told apart.
	By showback.By
	// Resources are the extended resources whose unit is a GPU.
	Resources []string
}

const (
	minStep = 15 * time.Second
	maxDays = 366
	// mostGPUs bounds what all pods of a namespace can have: a million GPUs.
	mostGPUs = 1e6
)

func (q Query) validate() error {
	switch {
	case !q.From.Before(q.To):
		return fmt.Errorf("from %s to %s: there is no time between them", q.From.Format(time.RFC3339),
			q.To.Format(time.RFC3339))
	case q.To.Sub(q.From) > maxDays*24*time.Hour:
		return fmt.Errorf("from %s to %s: more than %d days", q.From.Format(time.RFC3339), q.To.Format(time.RFC3339), maxDays)
	case q.Step < minStep || q.Step > 24*time.Hour || q.Step%time.Second != 0:
		return fmt.Errorf("a step of %s is not allowed; want whole seconds from %s to 24h", q.Step, minStep)
	}
	return nil
}

// ErrQuery is wrapped by errors about the query itself.
var ErrQuery = errors.New("unusable query")

// Read reads from Prometheus, day by day, who had GPUs and how busy these were, and what GPUs cost where OpenCost says
// so.
func Read(ctx context.Context, args *config.Prometheus, query Query) (*showback.Statement, error) {
	if err := query.validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrQuery, err)
	}
	server, err := signals.NewHistory(args)
	if err != nil {
		return nil, err
	}
	defer server.Close()
	q := questions{server, query.Resources}
	key := keyOf(query.By)
	var samples []showback.Sample
	var capacities []showback.Capacity
	// Each answer is of a day, so that its size does not depend on how long ago the beginning is.
	steps := int64(max(1, 24*time.Hour/query.Step))
	for at := query.From; at.Before(query.To); at = at.Add(time.Duration(steps) * query.Step) {
		last := at.Add(time.Duration(steps-1) * query.Step)
		if !last.Before(query.To) {
			last = query.To.Add(-1)
		}
		r := prometheusv1.Range{Start: at, End: last, Step: query.Step}
		day, capacity, err := q.use(ctx, key, r)
		if err != nil {
			return nil, err
		}
		samples, capacities = append(samples, day...), append(capacities, capacity...)
	}
	if len(samples) == 0 {
		return nil, fmt.Errorf(
			"%s has neither %s (the scheduler's /metrics/resources) nor %s (kube-state-metrics) with GPUs in this time",
			server.Server(), metricPodRequest, metricContainerRequest)
	}
	s, err := showback.FromSamples(query.From, query.To, query.Step, samples, capacities)
	if err != nil {
		return nil, err
	}
	s.Source, s.Input, s.By = "prometheus", server.Server(), query.By.String()
	s.Notes = append(s.Notes, key.notes(s.Lines)...)
	if s.Total.MicroDollars == 0 {
		s.Notes = append(s.Notes, "nothing is known of cost: there is no "+metricGPUCost+" (OpenCost)")
	} else {
		s.Notes = append(s.Notes, "dollars are those of the GPUs that pods had, by "+metricGPUCost+
			"; idle GPUs and the rest of the nodes have no price here")
	}
	if len(capacities) == 0 {
		s.Notes = append(s.Notes, "idle GPUs are not known: there is no "+metricGPUDevices)
	}
	return s, nil
}

// questions are asked of one server.
type questions struct {
	server *signals.History
	// resources are the extended resources whose unit is a GPU.
	resources []string
}

// moment is a sample's place.
type moment struct {
	at  model.Time
	key string
}

// use reads one range.
func (q questions) use(ctx context.Context, key podKey, r prometheusv1.Range) ([]showback.Sample, []showback.Capacity,
	error) {
	allocated, err := q.history(ctx, q.sum(key, q.held()), key.name(), r)
	if err != nil || len(allocated) == 0 {
		return nil, nil, err
	}
	used, err := q.history(ctx, q.sum(key, q.used()), key.name(), r)
	if err != nil {
		return nil, nil, err
	}
	cost, err := q.history(ctx, q.sum(key, q.cost()), key.name(), r)
	if err != nil {
		return nil, nil, err
	}
	devices, err := q.history(ctx, q.devices(), key.name(), r)
	if err != nil {
		return nil, nil, err
	}
	samples := make([]showback.Sample, 0, len(allocated))
	for of, value := range allocated {
		s := showback.Sample{At: of.at.Time().UTC(), Key: of.key, MilliGPU: int64(math.Round(value * 1000))}
		if s.Key == "" {
			s.Key = showback.None
		}
		if busy, ok := used[of]; ok {
			s.UsedMilliGPU, s.Measured = min(s.MilliGPU, int64(math.Round(busy*1000))), true
		}
		if amount, err := price.FromDollars(cost[of]); err == nil {
			s.Hourly = amount
		}
		samples = append(samples, s)
	}
	var capacities []showback.Capacity
	for of, value := range devices {
		capacities = append(capacities, showback.Capacity{At: of.at.Time().UTC(), MilliGPU: int64(math.Round(value * 1000))})
	}
	return samples, capacities, nil
}

// history asks for a range; a label says the key. Values that are no number of GPUs or dollars are left out.
func (q questions) history(ctx context.Context, query string, keyLabel model.LabelName,
	r prometheusv1.Range) (map[moment]float64, error) {
	matrix, err := q.server.Range(ctx, query, r)
	if err != nil {
		return nil, err
	}
	values := map[moment]float64{}
	for _, series := range matrix {
		key := string(series.Metric[keyLabel])
		for _, sample := range series.Values {
			if sample.Value >= 0 && sample.Value <= mostGPUs {
				values[moment{sample.Timestamp, key}] += float64(sample.Value)
			}
		}
	}
	return values, nil
}

// ofPods brings the labels of a series to those of the pod that it is about. Prometheus renames a label of the exporter
// to exported_… when the scraped target has one of the same name, which then names the exporter's own pod.
func ofPods(expression string) string {
	for _, label := range []string{"namespace", "pod", "node"} {
		expression = fmt.Sprintf(`label_replace(%s, %q, "$1", %q, "(.+)")`, expression, label, "exported_"+label)
	}
	return expression
}

var podLabels = []model.LabelName{"namespace", "pod", "node"}

// held are the GPUs that pods with a node ask for.
func (q questions) held() string {
	var own, foreign []string
	for _, name := range q.resources {
		own = append(own, regexp.QuoteMeta(name))
		foreign = append(foreign, notInLabels.ReplaceAllString(name, "_"))
	}
	scheduler := signals.Aggregate("max", podLabels,
		ofPods(q.server.Selector(metricPodRequest, fmt.Sprintf("resource=~%q", strings.Join(own, "|")), `node!=""`)))
	containers := ofPods(q.server.Selector(metricContainerRequest, fmt.Sprintf("resource=~%q", strings.Join(foreign, "|")),
		`node!=""`))
	state := signals.Aggregate("max", podLabels,
		signals.Aggregate("sum", append(slices.Clone(podLabels), "instance"), containers))
	living := signals.Aggregate("max", podLabels[:2],
		ofPods(q.server.Selector(metricPodPhase, `phase=~"Pending|Running"`))) + " > 0"
	return fmt.Sprintf("(%s or on (namespace, pod) (%s and on (namespace, pod) (%s)))", scheduler, state, living)
}

// used is how busy the GPUs of the pods were. Pods that share one GPU have equal parts of what it did.
func (q questions) used() string {
	device := []model.LabelName{signals.LabelIndex, signals.LabelUUID}
	busy := signals.Aggregate("max", append([]model.LabelName{"namespace", "pod"}, device...),
		ofPods(signals.InRange(q.server.Selector(signals.MetricGPUUtil, `pod!=""`), 100)))
	held := fmt.Sprintf("(%s and on (namespace, pod) %s)", busy, q.held())
	return fmt.Sprintf("%s / on (%s) group_left () %s / 100", held, signals.LabelIndex+", "+signals.LabelUUID,
		signals.Aggregate("count", device, held))
}

func (q questions) cost() string {
	perGPU := signals.Aggregate("max", podLabels[2:], ofPods(q.server.Selector(metricGPUCost)))
	return fmt.Sprintf("%s * on (node) group_left () (%s > 0)", q.held(), perGPU)
}

func (q questions) devices() string {
	return "sum (" + signals.Aggregate("max", []model.LabelName{"model"}, q.server.Selector(metricGPUDevices)) + ")"
}
