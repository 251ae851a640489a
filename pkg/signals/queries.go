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
	MetricGPUUtil         = "DCGM_FI_DEV_GPU_UTIL"
	metricMemoryUsed      = "DCGM_FI_DEV_FB_USED"
	metricMemoryFree      = "DCGM_FI_DEV_FB_FREE"
	metricMemoryReserved  = "DCGM_FI_DEV_FB_RESERVED"
	metricXID             = "DCGM_FI_DEV_XID_ERRORS"
	metricXIDCount        = "DCGM_EXP_XID_ERRORS_COUNT"
	metricRowRemapFailure = "DCGM_FI_DEV_ROW_REMAP_FAILURE"

	metricNodeCost      = "node_total_hourly_cost"
	metricOfferingPrice = "karpenter_cloudprovider_instance_type_offering_price_estimate"
)

// Labels of those series.
const (
	LabelIndex    model.LabelName = "gpu"
	LabelUUID     model.LabelName = "UUID"
	labelInstance model.LabelName = "GPU_I_ID"
	labelXID      model.LabelName = "xid"

	labelInstanceType model.LabelName = "instance_type"
	labelCapacityType model.LabelName = "capacity_type"
	labelZone         model.LabelName = "zone"
)

// labelReading is put on by the queries, so that one query brings several readings: PromQL drops the metric's name in
// every expression.
const labelReading model.LabelName = "berth_reading"

// Values of labelReading. A kind of reading with timeSuffix is the time of its samples.
const (
	readingEngine   = "engine"
	readingUtil     = "util"
	readingUsed     = "used"
	readingFree     = "free"
	readingReserved = "reserved"
	readingRowRemap = "row_remap"
	readingXIDCount = "xid_count"
	timeSuffix      = "_time"
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

// utilisation brings, for each GPU, the busiest of its series: one GPU has several when it is cut into MIG instances
// or when the exporter writes one for each pod that shares it.
func (q queries) utilisation() string {
	return or(
		tag(readingEngine, q.max(InRange(q.selector(metricEngineActive), 1))),
		tag(readingEngine+timeSuffix, q.oldest(metricEngineActive)),
		tag(readingUtil, q.max(InRange(q.selector(MetricGPUUtil), 100))),
		tag(readingUtil+timeSuffix, q.oldest(MetricGPUUtil)),
	)
}

// memory adds up the MIG instances of a GPU, each taken once however many pods share it.
func (q queries) memory() string {
	total := func(metric string) string {
		perInstance := Aggregate("max", append(q.gpuLabels(), labelInstance), InRange(q.selector(metric), maxMemoryMiB))
		return Aggregate("sum", q.gpuLabels(), perInstance)
	}
	return or(
		tag(readingUsed, total(metricMemoryUsed)),
		tag(readingFree, total(metricMemoryFree)),
		tag(readingReserved, total(metricMemoryReserved)),
		tag(readingUsed+timeSuffix, q.oldest(metricMemoryUsed)),
	)
}

// xidHistory brings the codes over the window of each GPU that has one now, and the points in time that were looked
// at as a series without labels: a GPU's own series may have ended before the window does.
func (q queries) xidHistory(window time.Duration) string {
	selector := q.selector(metricXID)
	codes := q.max(InRange(selector, largestXID))
	// "@ end()" makes the condition one lookup instead of one for each step.
	now := q.max(InRange(selector+" @ end()", largestXID)) + " > 0"
	return fmt.Sprintf("((%s and on (%s) (%s)) or vector(0))[%s:%s]",
		codes, join(q.gpuLabels()), now, promDuration(window), promDuration(xidStep(window)))
}

func xidStep(window time.Duration) time.Duration {
	return max(window/xidSteps, 30*time.Second).Truncate(time.Second)
}

// faults brings GPUs with a failed row remap, and those for which the exporter's own count of XID errors, which is
// optional, was above nothing in the window: it sees the fatal code that another code overwrote within a scrape.
func (q queries) faults(fatalXIDs []int32, window time.Duration) string {
	parts := []string{tag(readingRowRemap, q.max(InRange(q.selector(metricRowRemapFailure), 1)+" > 0"))}
	if len(fatalXIDs) > 0 {
		var codes []string
		for _, code := range fatalXIDs {
			codes = append(codes, strconv.Itoa(int(code)))
		}
		selector := q.selector(metricXIDCount, fmt.Sprintf("%s=~%q", labelXID, strings.Join(codes, "|")))
		counts := fmt.Sprintf("max_over_time(%s[%s]) > 0", selector, promDuration(window))
		parts = append(parts, tag(readingXIDCount, Aggregate("max", append(q.gpuLabels(), labelXID), counts)))
	}
	return or(parts...)
}

func (q queries) nodeCosts() string {
	return Aggregate("max", costNodeLabels, q.selector(metricNodeCost))
}

func (q queries) offeringPrices() string {
	return Aggregate("max", []model.LabelName{labelInstanceType, labelCapacityType, labelZone},
		q.selector(metricOfferingPrice))
}

func (q queries) selector(metric string, matchers ...string) string {
	if q.matchers != "" {
		matchers = append(matchers, q.matchers)
	}
	if len(matchers) == 0 {
		return metric
	}
	return metric + "{" + strings.Join(matchers, ",") + "}"
}

func (q queries) gpuLabels() []model.LabelName {
	return append(slices.Clone(q.hostLabels), LabelIndex, LabelUUID)
}

func (q queries) max(expression string) string {
	return Aggregate("max", q.gpuLabels(), expression)
}

// oldest brings the time of the oldest sample of metric on each host. An instant query stamps its values with the
// time of the query, so the time of the sample has to be asked for.
func (q queries) oldest(metric string) string {
	return Aggregate("min", q.hostLabels, "timestamp("+q.selector(metric)+")")
}

// InRange leaves out NaN, negative values and the "no reading" sentinels before an aggregation can spread them.
func InRange(selector string, largest int) string {
	return fmt.Sprintf("%s >= 0 <= %d", selector, largest)
}

// Aggregate aggregates an expression by labels.
func Aggregate(operator string, by []model.LabelName, expression string) string {
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
