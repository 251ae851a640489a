package signals

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"berth.dev/berth/pkg/apis/config"
)

// The queries. In them, HOSTS are the labels that may name the node, and MATCH the matchers of the cluster's series.
// DCGM_FI_… are field identifiers of NVIDIA's Data Center GPU Manager as dcgm-exporter writes them. PromQL drops the
// name of a metric in every expression, so that the label berth_reading distinguishes the results of one query.
// Comparisons leave out NaN, negative values and the "no reading" sentinels before an aggregation can spread them.
const (
	// queryUse brings, for each GPU, the busiest of its series: one GPU has several when it is cut into MIG instances or
	// when the exporter writes one for each pod that shares it. It adds up the memory of the MIG instances of a GPU, each
	// taken once however many pods share it. An instant query stamps its values with the time of the query, so the time
	// of the oldest sample on each host is asked for as well.
	queryUse = `label_replace(max by (HOSTS, gpu, UUID) (DCGM_FI_PROF_GR_ENGINE_ACTIVE{MATCH} >= 0 <= 1),
  "berth_reading", "engine", "", "")
or label_replace(max by (HOSTS, gpu, UUID) (DCGM_FI_DEV_GPU_UTIL{MATCH} >= 0 <= 100),
  "berth_reading", "util", "", "")
or label_replace(sum by (HOSTS, gpu, UUID) (
    max by (HOSTS, gpu, UUID, GPU_I_ID) (DCGM_FI_DEV_FB_USED{MATCH} >= 0 <= 16777216)),
  "berth_reading", "used", "", "")
or label_replace(sum by (HOSTS, gpu, UUID) (
    max by (HOSTS, gpu, UUID, GPU_I_ID) (DCGM_FI_DEV_FB_FREE{MATCH} >= 0 <= 16777216)),
  "berth_reading", "free", "", "")
or label_replace(min by (HOSTS) (
    timestamp(DCGM_FI_PROF_GR_ENGINE_ACTIVE{MATCH}) or timestamp(DCGM_FI_DEV_GPU_UTIL{MATCH})),
  "berth_reading", "time", "", "")`

	// queryFaults brings the XID codes over the window of each GPU that has one now, the GPUs with a failed row remap,
	// and the points in time that were looked at as a series without labels: a GPU's own series may have ended before the
	// window does. "@ end()" makes the condition one lookup instead of one for each step.
	queryFaults = `(label_replace(
    max by (HOSTS, gpu, UUID) (DCGM_FI_DEV_XID_ERRORS{MATCH} >= 0 <= 9999)
    and on (HOSTS, gpu, UUID) (max by (HOSTS, gpu, UUID) (DCGM_FI_DEV_XID_ERRORS{MATCH} @ end() >= 0 <= 9999) > 0),
  "berth_reading", "xid", "", "")
or label_replace(max by (HOSTS, gpu, UUID) (DCGM_FI_DEV_ROW_REMAP_FAILURE{MATCH} >= 0 <= 1 > 0),
  "berth_reading", "row_remap", "", "")
or vector(0))[WINDOW:STEP]`

	// queryPrices brings the prices of nodes (OpenCost) and of offerings (Karpenter).
	queryPrices = `label_replace(max by (HOSTS) (node_total_hourly_cost{MATCH}),
  "berth_reading", "node", "", "")
or label_replace(max by (instance_type, capacity_type, zone) (
    karpenter_cloudprovider_instance_type_offering_price_estimate{MATCH}),
  "berth_reading", "offering", "", "")`
)

// labelReading is the label that the queries add.
const labelReading model.LabelName = "berth_reading"

// fill writes a query for the series of one cluster. Only queryFaults looks back over a window.
func fill(query string, hostLabels []string, server *config.Prometheus, window time.Duration) string {
	var matchers []string
	for _, name := range slices.Sorted(maps.Keys(server.MatchLabels)) {
		matchers = append(matchers, name+"="+strconv.Quote(server.MatchLabels[name]))
	}
	return strings.NewReplacer(
		"HOSTS", strings.Join(hostLabels, ", "), "MATCH", strings.Join(matchers, ","),
		"WINDOW", promDuration(window), "STEP", promDuration(faultStep(window)),
	).Replace(query)
}

// faultStep divides the window of faults into 60 points in time. More would cost the server and add nothing: a code
// stays until another follows.
func faultStep(window time.Duration) time.Duration {
	return max(window/60, 30*time.Second).Truncate(time.Second)
}

func promDuration(d time.Duration) string { return model.Duration(d).String() }
