package history

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/prometheus/common/model"

	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/showback"
	"berth.dev/berth/pkg/signals"
)

// metricPodLabels is of kube-state-metrics and has those labels of pods that its flag --metric-labels-allowlist names.
const metricPodLabels = "kube_pod_labels"

// labelKey is put on by the queries: by what pods are told apart.
const labelKey model.LabelName = "berth_key"

// podKey says by which labels of the pods a query tells them apart; none of them for the namespace.
type podKey struct {
	labels []string
	gangs  bool
}

func keyOf(by showback.By) podKey {
	if label, ok := by.Label(); ok {
		return podKey{labels: []string{label}}
	}
	if by.Gangs() {
		return podKey{labels: gangview.Labels(), gangs: true}
	}
	return podKey{}
}

// name is the label of the answer that holds the key.
func (k podKey) name() model.LabelName {
	if len(k.labels) == 0 {
		return podLabels[0]
	}
	return labelKey
}

// notes says what the series cannot know.
func (k podKey) notes(lines []showback.Line) []string {
	var notes []string
	if k.gangs {
		notes = append(notes,
			"gangs are those that pods name in labels; gangs of a controller without a label are not told apart")
	}
	for _, line := range lines {
		if line.Key != showback.None {
			return notes
		}
	}
	if len(k.labels) > 0 {
		notes = append(notes, fmt.Sprintf(
			"no pod has the label: kube-state-metrics says labels of pods only with --metric-labels-allowlist=pods=[%s]",
			strings.Join(k.labels, ",")))
	}
	return notes
}

// sum adds up, by key, an expression with the namespaces and names of pods.
func (q questions) sum(key podKey, expression string) string {
	if len(key.labels) == 0 {
		return signals.Aggregate("sum", []model.LabelName{key.name()}, expression)
	}
	keys := q.keys(key)
	return signals.Aggregate("sum", []model.LabelName{key.name()},
		fmt.Sprintf("(%s) * on (namespace, pod) group_left (%s) %s or ((%s) unless on (namespace, pod) %s)",
			expression, key.name(), keys, expression, keys))
}

// keys has one series of value 1 for each pod with a key: of two labels the first counts, and after a change of the
// label, while Prometheus still holds the old series, either.
func (q questions) keys(key podKey) string {
	var each []string
	for _, label := range key.labels {
		name := stateLabel(label)
		pods := ofPods(q.server.Selector(metricPodLabels, name+`!=""`))
		if key.gangs {
			pods = fmt.Sprintf(`label_join(%s, %q, "/", "namespace", %q)`, pods, key.name(), name)
		} else {
			pods = fmt.Sprintf(`label_replace(%s, %q, "$1", %q, "(.+)")`, pods, key.name(), name)
		}
		each = append(each, signals.Aggregate("group", []model.LabelName{podLabels[0], podLabels[1], key.name()}, pods))
	}
	return fmt.Sprintf("topk by (namespace, pod) (1, %s)", strings.Join(each, " or on (namespace, pod) "))
}

var (
	notInLabels = regexp.MustCompile(`[^a-zA-Z0-9_]`)
	wordEnd     = regexp.MustCompile(`([a-z0-9])([A-Z])`)
)

// stateLabel is how kube-state-metrics writes the key of a label.
func stateLabel(key string) string {
	return "label_" + strings.ToLower(wordEnd.ReplaceAllString(notInLabels.ReplaceAllString(key, "_"), "${1}_${2}"))
}
