package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/pkg/plural"
)

// The data of the pages except that of the cluster.
type (
	nodeView struct {
		Cluster, Name string
		Node, Pods    table
	}
	namespaceView struct {
		Cluster, Name string
		Totals        []tile
		Jobs, Queues  table
	}
	explainView struct{ Cluster, Kind, Namespace, Name, Text, Failed string }
	problemView struct{ Cluster, Happened, Help string }
)

// problem serves a page that says what happened and what to do.
func (s *Server) problem(w http.ResponseWriter, status int, happened, help string) {
	s.write(w, status, "problem", problemView{s.source.Name, happened, help})
}

// node shows the pods of a node.
func (s *Server) node(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	for i, nodes := 0, s.cluster().Nodes; i < len(nodes); i++ {
		if nodes[i].Name == name {
			s.write(w, http.StatusOK, "node", nodeView{Cluster: s.source.Name, Name: name,
				Node: tableOf("Node", "", "", overview.NodeRows(nodes[i:i+1]), ""),
				Pods: tableOf("Pods", "", "No pods.", s.source.PodsOn(name), "")})
			return
		}
	}
	s.problem(w, http.StatusNotFound, fmt.Sprintf("There is no node %q with GPUs.", name),
		"It may have left the cluster since the page was made.")
}

// namespace shows the workloads and the queues of a namespace.
func (s *Server) namespace(w http.ResponseWriter, r *http.Request) {
	name, c := r.URL.Query().Get("name"), s.cluster()
	at := slices.IndexFunc(c.Namespaces, func(n overview.Namespace) bool { return n.Name == name })
	if at < 0 {
		s.problem(w, http.StatusNotFound, fmt.Sprintf("No pod of namespace %q runs or waits.", name),
			"It may be empty since the page was made.")
		return
	}
	n := &c.Namespaces[at]
	view := namespaceView{Cluster: s.source.Name, Name: name, Totals: []tile{
		{"GPUs", overview.GPUs(n.MilliGPU), fmt.Sprintf("of %s with a node", plural.Of(n.Pods, "pod"))},
		{"GPUs waited for", overview.GPUs(n.PendingMilliGPU), fmt.Sprintf("by %s", plural.Of(n.PendingPods, "pending pod"))},
		{"Cost an hour", overview.Dollars(n.MicroDollarsPerHour), "its share of the nodes with a known price"},
	}}
	jobs := slices.DeleteFunc(slices.Clone(c.Jobs), func(j overview.Job) bool { return j.Namespace != name })
	queues := slices.DeleteFunc(slices.Clone(c.Queues), func(q overview.Queue) bool { return q.Namespace != name })
	view.Jobs = tableOf("Workloads", sentences, "No workloads.", overview.JobRows(jobs), "")
	view.Queues = tableOf("Queues", "", "", overview.KueueRows(queues, c.Jobs), "")
	s.write(w, http.StatusOK, "namespace", view)
}

// explain runs the scheduler on a copy of the cluster. That can take long, so only one explanation runs at a time.
func (s *Server) explain(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	kind, namespace, name := query.Get("kind"), query.Get("namespace"), query.Get("name")
	if !overview.Explained(kind) || name == "" {
		s.problem(w, http.StatusBadRequest, fmt.Sprintf("A %q named %q cannot be explained.", kind, name),
			"The kind must be pod, podgroup, job, deployment, statefulset or replicaset, and the name that of one.")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), explainWithin)
	defer cancel()
	select {
	case s.explaining <- struct{}{}:
		defer func() { <-s.explaining }()
	case <-ctx.Done():
		s.problem(w, http.StatusServiceUnavailable, "Another explanation is still being computed.",
			"Try again in a moment.")
		return
	}
	text, err := s.source.Explain(ctx, kind, namespace, name, explainColumns)
	view := explainView{Cluster: s.source.Name, Kind: kind, Namespace: namespace, Name: name, Text: text}
	if err != nil {
		view.Failed = err.Error()
	}
	s.write(w, http.StatusOK, "explain", view)
}
