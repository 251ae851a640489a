package signals

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// Names of the series that are read. DCGM: field identifiers of NVIDIA's Data Center GPU Manager as dcgm-exporter
// writes them.
const (
	metricEngineActive    = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
	metricGPUUtil         = "DCGM_FI_DEV_GPU_UTIL"
	metricMemoryUsed      = "DCGM_FI_DEV_FB_USED"
	metricMemoryFree      = "DCGM_FI_DEV_FB_FREE"
	metricXID             = "DCGM_FI_DEV_XID_ERRORS"
	metricRowRemapFailure = "DCGM_FI_DEV_ROW_REMAP_FAILURE"

	metricNodeCost      = "node_total_hourly_cost"
	metricOfferingPrice = "karpenter_cloudprovider_instance_type_offering_price_estimate"
)

// Labels of those series.
const (
	labelIndex    model.LabelName = "gpu"
	labelUUID     model.LabelName = "UUID"
	labelInstance model.LabelName = "GPU_I_ID"

	labelInstanceType model.LabelName = "instance_type"
	labelCapacityType model.LabelName = "capacity_type"
	labelZone         model.LabelName = "zone"
)

// labelReading is put on by the queries, so that one query brings several readings: PromQL drops the metric's name in
// every expression.
const labelReading model.LabelName = "berth_reading"

// Values of labelReading.
const (
	readingTime     = "time"
	readingEngine   = "engine"
	readingUtil     = "util"
	readingUsed     = "used"
	readingFree     = "free"
	readingXID      = "xid"
	readingRowRemap = "row_remap"
	readingNode     = "node"
	readingOffering = "offering"
)

// costNodeLabels may name the node of a price by node, the first one present decides. Prometheus renames a label of the
// exporter to exported_… when the scraped target has one of the same name, which then names the exporter's own node.
var costNodeLabels = []model.LabelName{"exported_node", "node", "exported_instance", "instance"}

// xidSteps is the number of points in time at which the history of XID codes is looked at. More would be dearer for
// the server and tell nothing: a code stays until another follows.
const xidSteps = 60

// queries writes PromQL for the series of one cluster.
type queries struct {
	hostLabels []model.LabelName
	matchers   string
}

func newQueries(hostLabels []string, matchLabels map[string]string) queries {
	q := queries{}
	for _, label := range hostLabels {
		q.hostLabels = append(q.hostLabels, model.LabelName(label))
	}
	var matchers []string
	for _, name := range slices.Sorted(maps.Keys(matchLabels)) {
		matchers = append(matchers, name+"="+strconv.Quote(matchLabels[name]))
	}
	q.matchers = strings.Join(matchers, ",")
	return q
}

// use brings, for each GPU, the busiest of its series: one GPU has several when it is cut into MIG instances or when
// the exporter writes one for each pod that shares it. It adds up the memory of the MIG instances of a GPU, each taken
// once however many pods share it. An instant query stamps its values with the time of the query, so the time of the
// oldest sample on each host is asked for as well.
func (q queries) use() string {
	memory := func(metric string) string {
		perInstance := aggregate("max", append(q.gpuLabels(), labelInstance), inRange(q.selector(metric), maxMemoryMiB))
		return aggregate("sum", q.gpuLabels(), perInstance)
	}
	engine, util := q.selector(metricEngineActive), q.selector(metricGPUUtil)
	return or(
		tag(readingEngine, q.max(inRange(engine, 1))),
		tag(readingUtil, q.max(inRange(util, 100))),
		tag(readingUsed, memory(metricMemoryUsed)),
		tag(readingFree, memory(metricMemoryFree)),
		tag(readingTime, aggregate("min", q.hostLabels, or("timestamp("+engine+")", "timestamp("+util+")"))),
	)
}

// faults brings the XID codes over the window of each GPU that has one now, the GPUs with a failed row remap, and the
// points in time that were looked at as a series without labels: a GPU's own series may have ended before the window
// does.
func (q queries) faults(window time.Duration) string {
	selector := q.selector(metricXID)
	codes := q.max(inRange(selector, largestXID))
	// "@ end()" makes the condition one lookup instead of one for each step.
	now := q.max(inRange(selector+" @ end()", largestXID)) + " > 0"
	return fmt.Sprintf("(%s)[%s:%s]", or(
		tag(readingXID, fmt.Sprintf("(%s and on (%s) (%s))", codes, join(q.gpuLabels()), now)),
		tag(readingRowRemap, q.max(inRange(q.selector(metricRowRemapFailure), 1)+" > 0")),
		"vector(0)",
	), promDuration(window), promDuration(xidStep(window)))
}

func xidStep(window time.Duration) time.Duration {
	return max(window/xidSteps, 30*time.Second).Truncate(time.Second)
}

// prices brings the prices of nodes (OpenCost) and of offerings (Karpenter).
func (q queries) prices() string {
	offering := []model.LabelName{labelInstanceType, labelCapacityType, labelZone}
	return or(
		tag(readingNode, aggregate("max", costNodeLabels, q.selector(metricNodeCost))),
		tag(readingOffering, aggregate("max", offering, q.selector(metricOfferingPrice))),
	)
}

func (q queries) selector(metric string) string {
	if q.matchers == "" {
		return metric
	}
	return metric + "{" + q.matchers + "}"
}

func (q queries) gpuLabels() []model.LabelName {
	return append(slices.Clone(q.hostLabels), labelIndex, labelUUID)
}

func (q queries) max(expression string) string {
	return aggregate("max", q.gpuLabels(), expression)
}

// inRange leaves out NaN, negative values and the "no reading" sentinels before an aggregation can spread them.
func inRange(selector string, largest int) string {
	return fmt.Sprintf("%s >= 0 <= %d", selector, largest)
}

// aggregate aggregates an expression by labels.
func aggregate(operator string, by []model.LabelName, expression string) string {
	return fmt.Sprintf("%s by (%s) (%s)", operator, join(by), expression)
}

func tag(reading, expression string) string {
	return fmt.Sprintf("label_replace(%s, %q, %q, \"\", \"\")", expression, labelReading, reading)
}

func or(expressions ...string) string { return strings.Join(expressions, " or ") }

func join(labels []model.LabelName) string {
	names := make([]string, len(labels))
	for i, label := range labels {
		names[i] = string(label)
	}
	return strings.Join(names, ", ")
}

func promDuration(d time.Duration) string { return model.Duration(d).String() }
