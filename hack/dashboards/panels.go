package main

// rate5m keeps the windows of all rates alike.
func rate5m(metric string) string { return "rate(" + metric + "[5m])" }

func quantile(q, histogram, by string) string {
	labels := "le"
	if by != "" {
		labels += ", " + by
	}
	return "histogram_quantile(" + q + ", sum by (" + labels + ") (" + rate5m(histogram+"_bucket") + "))"
}

// cluster is a gauge that says something of the cluster. Each replica exports it, a standby and an extender, too: the
// largest is as good as any, and a sum of them would count the cluster several times. Further labels are those to tell
// series apart.
func cluster(gauge, by string) string {
	if by == "" {
		return "max(" + gauge + ")"
	}
	return "max by (" + by + ") (" + gauge + ")"
}

var dashboards = []dashboard{
	{"berth-gpus", "Berth: GPUs and cost", []panel{
		{"GPUs in use", "Share of the installed GPUs that pods hold, by model.", "percentunit", []query{
			{cluster("berth_gpu_allocated", "model") + " / " + cluster("berth_gpu_devices", "model"), "{{model}}"}}},
		{"Free GPUs", "Compute that no pod holds, and what of it the present work is not expected to use.", "none", []query{
			{"sum(" + cluster("berth_gpu_free", "model") + ")", "free"},
			{"sum(" + cluster("berth_gpu_stranded", "model") + ")", "stranded"},
			{"sum(" + cluster("berth_gpu_unhealthy", "model") + ")", "unhealthy"}}},
		{"Fragmentation of shared GPUs", "Share of the free compute and memory that is on GPUs that are partly used.",
			"percentunit", []query{
				{cluster("berth_gpu_fragmentation_ratio", "model"), "compute, {{model}}"},
				{cluster("berth_gpu_memory_fragmentation_ratio", "model"), "memory, {{model}}"}}},
		{"Cost of all nodes", "Dollars per hour, by type of capacity.", "currencyUSD", []query{
			{cluster(`berth_cluster_cost_dollars_per_hour{profile="$profile"}`, "capacity_type"), "{{capacity_type}}"}}},
		{"Where the money goes", "Nodes that pods keep, idle GPUs, and idle GPUs that lack CPU or memory. Dollars per hour.",
			"currencyUSD", []query{
				{cluster(`berth_nodes_in_use_cost_dollars_per_hour{profile="$profile"}`, ""), "nodes in use"},
				{cluster(`berth_idle_gpu_cost_dollars_per_hour{profile="$profile"}`, ""), "idle GPUs"},
				{cluster(`berth_stranded_gpu_cost_dollars_per_hour{profile="$profile"}`, ""), "stranded GPUs"}}},
		{"Spot share and unknown prices", "Share of the cost that is spot capacity, and nodes without a price.", "none",
			[]query{
				{cluster(`berth_spot_cost_ratio{profile="$profile"}`, ""), "spot share"},
				{cluster(`berth_nodes_without_price{profile="$profile"}`, ""), "nodes without price"}}},
	}},
	{"berth-gangs", "Berth: gangs and service levels", []panel{
		{"Gangs by state", "", "none", []query{{cluster("berth_gang_groups", "state"), "{{state}}"}}},
		{"Wait of gangs", "From when a gang had enough members to when its minimum was bound.", "s", []query{
			{quantile("0.5", "berth_gang_wait_seconds", ""), "median"},
			{quantile("0.95", "berth_gang_wait_seconds", ""), "95th percentile"}}},
		{"Told starts", "How far from the start that they were told first gangs started.", "s", []query{
			{quantile("0.5", "berth_gang_start_error_seconds", "within"), "median, within the interval: {{within}}"}}},
		{"Told starts of single pods", "How far from the start that they were told first pods in no gang started.", "s", []query{
			{quantile("0.5", "berth_pod_start_error_seconds", "within"), "median, within the interval: {{within}}"}}},
		{"Slips of told starts", "Starts that were told behind the interval before, per second.", "ops", []query{
			{"sum(" + rate5m("berth_gang_start_slips_total") + ")", "slips"}}},
		{"GPU time in nodes kept for gangs", "Part of the GPU time of pods that have gone.", "percentunit", []query{
			{"sum(" + rate5m(`berth_pod_gpu_seconds_total{entered="true"}`) + ") / sum(" + rate5m("berth_pod_gpu_seconds_total") + ")", "entered"}}},
		{"Planning", "Time of the scheduling loop that a plan takes, by result.", "s", []query{
			{quantile("0.95", "berth_gang_plan_duration_seconds", "result"), "{{result}}, 95th percentile"}}},
		{"Nodes examined for a plan", "", "none",
			[]query{{quantile("0.95", "berth_gang_plan_nodes_examined", ""), "95th percentile"}}},
		{"Preemption", "Pods and whole gangs that were evicted, per second.", "ops", []query{
			{"sum(" + rate5m("berth_gang_preempted_pods_total") + ")", "pods"},
			{"sum(" + rate5m("berth_gang_preempted_groups_total") + ")", "gangs"}}},
		{"Moves", "Pods that were moved so that a gang starts sooner, and moves that stopped, per second.", "ops", []query{
			{"sum(" + rate5m("berth_gang_moved_pods_total") + ")", "pods"},
			{"sum(" + rate5m("berth_gang_moves_stopped_total") + ")", "stopped"}}},
		{"Search for pods to evict", "In the background; other pods do not wait for it.", "s", []query{
			{quantile("0.95", "berth_gang_eviction_search_duration_seconds", ""), "95th percentile"}}},
		{"Age of the reservation", "How long capacity has been kept for a gang; 0 without one.", "s",
			[]query{{cluster("berth_gang_reservation_age_seconds", ""), "age"}}},
		{"Plans that no longer held, timeouts and missed deadlines", "Per second.", "ops", []query{
			{"sum(" + rate5m("berth_gang_plans_invalidated_total") + ")", "assignments that no longer held"},
			{"sum(" + rate5m("berth_gang_plan_pauses_total") + ")", "pauses in which others went first"},
			{"sum by (class) (" + rate5m("berth_sla_wait_timeouts_total") + ")", "timeouts of class {{class}}"},
			{"sum by (of) (" + rate5m("berth_sla_missed_deadlines_total") + ")", "missed deadlines of a {{of}}"}}},
	}},
	{"berth-scheduler", "Berth: scheduler", []panel{
		{"Attempts", "Scheduling attempts per second, by result.", "ops", []query{
			{"sum by (result) (" + rate5m("scheduler_schedule_attempts_total") + ")", "{{result}}"}}},
		{"Pending pods", "By queue of the replica that leads: active, backoff, unschedulable, gated.", "none", []query{
			{"sum by (queue) (scheduler_pending_pods unless on (instance) leader_election_master_status == 0)", "{{queue}}"}}},
		{"Time of a scheduling cycle", "The algorithm alone, without binding.", "s", []query{
			{quantile("0.5", "scheduler_scheduling_algorithm_duration_seconds", ""), "median"},
			{quantile("0.99", "scheduler_scheduling_algorithm_duration_seconds", ""), "99th percentile"}}},
		{"Time of a plugin", "Mean over the sampled cycles, by plugin and extension point.", "s", []query{
			{"sum by (plugin, extension_point) (" + rate5m("scheduler_plugin_execution_duration_seconds_sum") +
				") / sum by (plugin, extension_point) (" +
				rate5m("scheduler_plugin_execution_duration_seconds_count") + ")", "{{plugin}} {{extension_point}}"}}},
		{"Candidates", "Cycles per second that are restricted to the best nodes, and why others are not.", "ops", []query{
			{"sum by (outcome) (" + rate5m("berth_candidates_cycles_total") + ")", "{{outcome}}"}}},
		{"Packing cache", "Share of the packing values that were found in the cache.", "percentunit", []query{
			{"sum(" + rate5m("berth_gpu_packing_cache_hits_total") + ") / (sum(" + rate5m("berth_gpu_packing_cache_hits_total") +
				") + sum(" +
				rate5m("berth_gpu_packing_cache_misses_total") + "))", "hits"}}},
		{"Distance in the network", "Mean distance of a pod to those that it talks to, in microseconds for 1 MiB.", "µs",
			[]query{
				{quantile("0.5", "berth_network_mean_distance_microseconds", "profile"), "{{profile}}, median"}}},
		{"Evictions by the stock preemption", "Victims per attempt.", "none", []query{
			{quantile("0.95", "scheduler_preemption_victims", ""), "95th percentile"}}},
		{"Configurations in force",
			"Replicas by configuration; more than one for long means that a replica could not take a change.", "none", []query{
				{"count by (in_force) (berth_config_hash_info)", "{{in_force}}"},
				{"sum(berth_config_last_reload_successful)", "replicas whose file is in force"}}},
		{"Changes of the configuration", "In an hour, by result.", "none", []query{
			{"sum by (result) (increase(berth_config_reload_total[1h]))", "{{result}}"}}},
		{"Time of a change", "From the file to a scheduler that has all its objects.", "s", []query{
			{"max(berth_config_change_duration_seconds)", "slowest replica"}}},
		{"Missing rights", "What the account may not do, and so does not work.", "none", []query{
			{"max by (feature, verb, resource) (berth_right_missing)", "{{feature}}: {{verb}} {{resource}}"}}},
		{"Fields that the API server drops", "A CustomResourceDefinition is not the one of this release.", "none", []query{
			{"max by (resource, field) (berth_field_pruned)", "{{resource}}: {{field}}"}}},
		{"Pods that claim GPUs",
			"In an hour: running pods whose annotations were edited, and pods that no scheduler assigned.", "none", []query{
				{"max(increase(berth_gpu_edited_pods_total[1h]))", "edited"},
				{"max(increase(berth_gpu_unassigned_pods_total[1h]))", "not assigned"}}},
	}},
	{"berth-sources", "Berth: signals, rules and agents", []panel{
		{"Age of signals", "Of the newest sample, in the replica in which it is oldest. Old signals do not count.", "s",
			[]query{
				{"max by (signal) (berth_signal_age_seconds)", "{{signal}}"}}},
		{"Coverage of signals", "Share of the GPU nodes with a sample that counts, in the replica with the fewest.",
			"percentunit", []query{
				{"min by (signal) (berth_signal_coverage_ratio)", "{{signal}}"}}},
		{"Failed queries and dropped samples", "Per second.", "ops", []query{
			{"sum by (signal) (" + rate5m("berth_signal_query_failures_total") + ")", "{{signal}} failed"},
			{"sum by (signal, reason) (" + rate5m("berth_signal_dropped_samples_total") + ")", "{{signal}} {{reason}}"}}},
		{"Time of queries", "", "s", []query{{quantile("0.95", "berth_signal_query_duration_seconds", "signal"),
			"{{signal}}, 95th percentile"}}},
		{"Licenses", "In use, and how many there are.", "none", []query{
			{cluster("berth_licenses_used", "policy, rule, license"), "{{license}} ({{rule}}) in use"},
			{cluster("berth_licenses_limit", "policy, rule, license"), "{{license}} ({{rule}})"}}},
		{"Free addresses", "By pool and domain.", "none", []query{
			{cluster("berth_ip_addresses_free", "pool, domain"), "{{pool}} {{domain}}"}}},
		{"Placement policies", "Those that are not accepted have a rule that cannot be evaluated.", "none", []query{
			{cluster("berth_placement_policies", "accepted"), "accepted: {{accepted}}"}}},
		{"Node agents", "GPUs by state as the agents see them.", "none",
			[]query{{"sum by (state) (berth_node_agent_gpus)", "{{state}}"}}},
		{"Extender", "Requests per second by verb and result.", "ops", []query{
			{"sum by (verb, result) (" + rate5m("berth_extender_requests_total") + ")", "{{verb}} {{result}}"}}},
		{"Time of the extender's answers", "", "s", []query{
			{quantile("0.95", "berth_extender_request_duration_seconds", "verb"), "{{verb}}, 95th percentile"}}},
	}},
}
