package tool_test

import (
	"strings"
	"testing"
)

// What a reader of the file would take for a setting, and nothing reads, is told with what to write.
func TestKeysThatNothingReadsWhereTheyAre(t *testing.T) {
	t.Parallel()
	const pod = "spec: {restartPolicy: Never, containers: [{name: c, image: i}]}"
	object := func(apiVersion, kind, metadata, rest string) string {
		return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata:\n  name: x\n  " + metadata + "\n" + rest + "\n"
	}
	const (
		template = "spec:\n  template:\n    metadata: {labels: {a: b}}\n    " + pod
		cron     = "spec:\n  jobTemplate:\n    metadata: {}\n    spec:\n      template:\n        metadata: {}\n        " + pod
		jobSet   = "spec:\n  replicatedJobs:\n  - name: w\n    template: {spec: {template: {metadata: {}, " + pod + "}}}"
		workers  = "spec:\n  leaderWorkerTemplate: {size: 2, workerTemplate: {metadata: {}, " + pod + "}}"
		gang     = "annotations: {berth.dev/gang: \"true\"}"
		models   = "annotations: {berth.dev/gpu-models: Tesla-T4}"
	)
	effect := func(kind, what, instead string) []string {
		return []string{"f.yaml:5: warning: " + kind + " x: " + what + " has no effect here: " +
			instead + " (no-effect)"}
	}
	const note = ": not checked: the fields of this kind"
	unchecked := func(kind, what, instead string) []string {
		return append([]string{"f.yaml:2: note: " + kind + " x" + note}, effect(kind, what, instead)...)
	}
	for _, tt := range []fileCase{
		{name: "a gang on a Job", text: object("batch/v1", "Job", gang, template),
			want: effect("Job", "annotation berth.dev/gang", "set it in spec.template.metadata.annotations")},
		{name: "a gang on a Job and on its template", text: object("batch/v1", "Job", gang,
			strings.Replace(template, "labels: {a: b}", gang, 1))},
		{name: "a gang on a CronJob", text: object("batch/v1", "CronJob", gang, cron), want: effect("CronJob",
			"annotation berth.dev/gang", "set it in spec.jobTemplate.spec.template.metadata.annotations")},
		{name: "a gang on the template of Jobs", text: object("batch/v1", "CronJob", "labels: {}",
			strings.Replace(cron, "metadata: {}", "metadata: {"+gang+"}", 1)),
			want: []string{"f.yaml:8: warning: CronJob x: annotation berth.dev/gang has no effect here: set it in " +
				"spec.jobTemplate.spec"}},
		{name: "models on a Deployment", text: object("apps/v1", "Deployment", models, template),
			want: effect("Deployment", "annotation berth.dev/gpu-models",
				"set it in spec.template.metadata.annotations")},
		{name: "sharing on a DaemonSet", text: object("apps/v1", "DaemonSet", "annotations: {berth.dev/gpu-sharing: "+
			"shared}", template), want: effect("DaemonSet", "annotation berth.dev/gpu-sharing",
			"set it in spec.template.metadata.annotations")},
		{name: "the label of a PodGroup on a StatefulSet", text: object("apps/v1", "StatefulSet",
			"labels: {scheduling.x-k8s.io/pod-group: g}", template), want: effect("StatefulSet",
			"label scheduling.x-k8s.io/pod-group", "set it in spec.template.metadata.labels")},
		{name: "a run time on a JobSet", text: object("jobset.x-k8s.io/v1alpha2", "JobSet",
			"annotations: {berth.dev/run-time: 3h}", jobSet),
			want: unchecked("JobSet", "annotation berth.dev/run-time",
				"set it in spec.replicatedJobs[0].template.spec.template.metadata.annotations")},
		{name: "a gang on a LeaderWorkerSet", text: object("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", gang,
			workers), want: unchecked("LeaderWorkerSet", "annotation berth.dev/gang",
			"set it in spec.leaderWorkerTemplate.workerTemplate.metadata.annotations")},
		{name: "models on a RayJob", text: object("ray.io/v1", "RayJob", models,
			"spec: {rayClusterSpec: {headGroupSpec: {template: {"+pod+"}}}}"),
			want: unchecked("RayJob", "annotation berth.dev/gpu-models",
				"set it in spec.rayClusterSpec.headGroupSpec.template.metadata.annotations")},
		{name: "models on a RayService", text: object("ray.io/v1", "RayService", models,
			"spec: {rayClusterConfig: {headGroupSpec: {template: {"+pod+"}}}}"),
			want: unchecked("RayService", "annotation berth.dev/gpu-models",
				"set it in spec.rayClusterConfig.headGroupSpec.template.metadata.annotations")},
		{name: "models on a TrainJob", text: object("trainer.kubeflow.org/v1alpha1", "TrainJob", models,
			"spec: {runtimeRef: {name: torch}}"),
			want: unchecked("TrainJob", "annotation berth.dev/gpu-models", "set it on the pods")},
		{name: "models on a Job of Volcano", text: object("batch.volcano.sh/v1alpha1", "Job", models,
			"spec: {tasks: [{name: t, replicas: 9, template: {"+pod+"}}]}"), want: unchecked("Job",
			"annotation berth.dev/gpu-models", "set it in spec.tasks[0].template.metadata.annotations")},
		{name: "a level on a Job of Volcano, which its group gets", text: object("batch.volcano.sh/v1alpha1", "Job",
			"annotations: {berth.dev/topology-required: rack}", "spec: {tasks: [{name: t, template: {"+pod+"}}]}"),
			want: []string{"f.yaml:2: note: Job x" + note}},
		{name: "a gang on a Job of Volcano", text: object("batch.volcano.sh/v1alpha1", "Job", gang,
			"spec: {tasks: [{name: t, template: {"+pod+"}}]}"),
			want: unchecked("Job", "annotation berth.dev/gang", "the group is a gang without it")},
		{name: "a gang on an MPIJob", text: object("kubeflow.org/v2beta1", "MPIJob", gang,
			"spec: {mpiReplicaSpecs: {Worker: {template: {"+pod+"}}}}"), want: unchecked("MPIJob",
			"annotation berth.dev/gang", "set it in spec.mpiReplicaSpecs.Worker.template.metadata.annotations")},
		{name: "a group of Volcano on a Job", text: object("batch/v1", "Job", "annotations: "+
			"{scheduling.k8s.io/group-name: g}", template), want: effect("Job",
			"annotation scheduling.k8s.io/group-name", "set it in spec.template.metadata.annotations")},
		{name: "a gang on the template of a JobSet", text: object("jobset.x-k8s.io/v1alpha2", "JobSet", "labels: {}",
			strings.Replace(jobSet, "metadata: {}", "metadata: {"+gang+"}", 1)),
			want: []string{"f.yaml:2: note: JobSet x" + note}},
		{name: "a bad value in the template of a JobSet", text: object("jobset.x-k8s.io/v1alpha2", "JobSet",
			"labels: {}", strings.Replace(jobSet, "metadata: {}", "metadata: {annotations: {berth.dev/spot: maybe}}",
				1)), want: []string{"f.yaml:2: note: JobSet x" + note, `f.yaml:9: error: JobSet x: ` +
			`spec.replicatedJobs[0].template.spec.template.metadata.annotations[berth.dev/spot]: "maybe" is not one ` +
			`of`}},
		{name: "a kind that copies its annotations to its pods", text: object("kubeflow.org/v1", "Notebook",
			"annotations: {berth.dev/spot: tolerate}", "spec: {template: {"+pod+"}}"),
			want: []string{"f.yaml:2: note: Notebook x" + note}},
		{name: "a gang in a CronJob, said wrongly", text: object("batch/v1", "CronJob", "labels: {}",
			strings.Replace(cron, "metadata: {}\n        spec", "metadata: {annotations: {berth.dev/gang: "+
				"\"yes\"}}\n        spec", 1)), want: []string{`f.yaml:11: error: CronJob x: ` +
			`spec.jobTemplate.spec.template.metadata.annotations[berth.dev/gang]: "yes" is not "true"`}},

		{name: "an annotation of pods as a label", text: object("v1", "Pod", "labels: {berth.dev/spot: tolerate}",
			pod), want: effect("Pod", "label berth.dev/spot", "it is read from annotations")},
		{name: "the label of a PodGroup as an annotation", text: object("v1", "Pod",
			"annotations: {scheduling.x-k8s.io/pod-group: g}", pod),
			want: effect("Pod", "annotation scheduling.x-k8s.io/pod-group", "it is read from labels")},
		{name: "a service level as a label", text: object("v1", "Pod", "labels: {berth.dev/sla-class: gold}", pod)},
		{name: "groups on a pod", text: object("v1", "Pod", "annotations: {berth.dev/group-label: g}", pod),
			want: effect("Pod", "annotation berth.dev/group-label", "set it on the PodGroup")},
		{name: "models on a PodGroup", text: object("scheduling.x-k8s.io/v1alpha1", "PodGroup", models,
			"spec: {minMember: 1}"),
			want: effect("PodGroup", "annotation berth.dev/gpu-models", "set it on the pods")},
		{name: "models on a group of Volcano", text: object("scheduling.volcano.sh/v1beta1", "PodGroup", models,
			"spec: {minMember: 1}"),
			want: unchecked("PodGroup", "annotation berth.dev/gpu-models", "set it on the pods")},
		{name: "a price of a node as a label", text: object("v1", "Node", "labels: {berth.dev/price-per-hour: \"3\"}",
			""), want: effect("Node", "label berth.dev/price-per-hour", "it is read from annotations")},
		{name: "what Berth wrote", text: object("v1", "Pod", "annotations: {berth.dev/ip-address: 10.0.0.1}", pod)},

		{name: "the modes of a node", text: object("v1", "Node", "labels: {berth.dev/gpu-modes: shared}", ""),
			want: []string{"f.yaml:5: error: Node x: metadata.labels[berth.dev/gpu-modes]: unknown key; did you " +
				"mean berth.dev/gpu-mode?"}},
		{name: "the label of a PodGroup without its hyphen", text: object("v1", "Pod",
			"labels: {scheduling.x-k8s.io/podgroup: g}", pod),
			want: []string{"f.yaml:5: warning: Pod x: label scheduling.x-k8s.io/podgroup is not read; did you mean " +
				"the label scheduling.x-k8s.io/pod-group? (unknown-key)"}},
		{name: "one in the template of a Job", text: object("batch/v1", "Job", "labels: {}",
			strings.Replace(template, "a: b", "scheduling.x-k8s.io/podGroup: g", 1)),
			want: []string{"f.yaml:8: warning: Job x: label scheduling.x-k8s.io/podGroup is not read; did you mean " +
				"the label scheduling.x-k8s.io/pod-group? (unknown-key)"}},
		{name: "the label of a PodGroup in the first releases", text: object("v1", "Pod",
			"labels: {pod-group.scheduling.sigs.k8s.io: g}", pod),
			want: []string{"f.yaml:5: warning: Pod x: label pod-group.scheduling.sigs.k8s.io is not read; did you " +
				"mean the label scheduling.x-k8s.io/pod-group? (unknown-key)"}},
		{name: "a minimum that is misspelt", text: object("v1", "Pod",
			"labels: {pod-group.scheduling.sigs.k8s.io/name: g, pod-group.scheduling.sigs.k8s.io/min-available: "+
				"\"1\", pod-group.scheduling.sigs.k8s.io/min-avaliable: \"1\"}", pod),
			want: []string{"f.yaml:5: warning: Pod x: label pod-group.scheduling.sigs.k8s.io/min-avaliable is not " +
				"read; did you mean the label pod-group.scheduling.sigs.k8s.io/min-available? (unknown-key)"}},
		{name: "labels of other projects", text: object("v1", "Pod", "labels: {kueue.x-k8s.io/queue-name: q, "+
			"podgroup: g}", pod)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sameBeginnings(t, findings(t, tt.text), tt.want)
		})
	}
}

func TestVersionsThatThereAreNot(t *testing.T) {
	t.Parallel()
	const in = " in Kubernetes 1.37"
	for _, tt := range []struct{ level, apiVersion, kind, instead string }{
		{"error", "batch/v1beta1", "CronJob", in + "; write apiVersion: batch/v1"},
		{"error", "extensions/v1beta1", "Deployment", in + "; write apiVersion: apps/v1"},
		{"error", "v1", "Deployment", in + "; write apiVersion: apps/v1"},
		{"error", "apps/v1", "Deploymet", in + "; did you mean Deployment?"},
		{"error", "policy/v1beta1", "PodDisruptionBudget", in + "; write apiVersion: policy/v1"},
		{"error", "scheduling.k8s.io/v1alpha2", "PodGroup", in + "; write apiVersion: scheduling.k8s.io/v1beta1"},
		{"warning", "scheduling.k8s.io/v1", "PodGroup",
			in + "; write apiVersion: scheduling.k8s.io/v1beta1"},
		{"error", "scheduling.x-k8s.io/v1beta1", "PodGroup", "; write apiVersion: scheduling.x-k8s.io/v1alpha1"},
		{"error", "scheduling.sigs.k8s.io/v1alpha1", "PodGroup", "; write apiVersion: scheduling.x-k8s.io/v1alpha1"},
	} {
		t.Run(tt.kind+" of "+tt.apiVersion, func(t *testing.T) {
			t.Parallel()
			text := "apiVersion: " + tt.apiVersion + "\nkind: " + tt.kind + "\n"
			sameBeginnings(t, findings(t, text), []string{"f.yaml:2: " + tt.level + ": " + tt.kind +
				": kind: there is no kind " + tt.kind + " of " + tt.apiVersion + tt.instead + " (kind)"})
		})
	}
}

func TestFieldsOfKindsThatAreNotBerths(t *testing.T) {
	t.Parallel()
	for _, tt := range []fileCase{
		{name: "a configuration of an older Kubernetes", text: "apiVersion: kubescheduler.config.k8s.io/v1beta3\n" +
			"kind: KubeSchedulerConfiguration\n", want: []string{"f.yaml:2: error: kind: there is no kind " +
			"KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1beta3; write apiVersion: " +
			"kubescheduler.config.k8s.io/v1 (kind)"}},
		{name: "a Workload of a newer Kubernetes", text: "apiVersion: scheduling.k8s.io/v1beta1\nkind: Workload\n" +
			"metadata: {name: w}\nspec: {podGroupTemplates: [], newTemplates: []}\n", want: []string{
			"f.yaml:4: warning: Workload w: spec.newTemplates: unknown field in Kubernetes 1.37 (unknown-field)"}},
		{name: "a Workload with templates of composite groups", text: "apiVersion: scheduling.k8s.io/v1beta1\n" +
			"kind: Workload\nmetadata: {name: w}\nspec: {compositePodGroupTemplates: [{name: a}]}\n"},
		{name: "a Kustomization", text: "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nressources: []\n",
			want: []string{"f.yaml:3: warning: Kustomization: ressources: unknown field; did you mean resources? " +
				"(unknown-field)"}},
		{name: "a PodGroup of Berth's own", text: "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\n" +
			"metadata: {name: g}\nspec: {minMembers: 3}\n", want: []string{
			"f.yaml:4: error: PodGroup g: spec.minMembers: unknown field; did you mean minMember? (unknown-field)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sameBeginnings(t, findings(t, tt.text), tt.want)
		})
	}
}
