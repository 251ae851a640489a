// Command dashboards writes the Grafana dashboards of manifests/monitoring/dashboards from the lists of panels in this
// folder.
//
//	go run ./hack/dashboards manifests/monitoring/dashboards
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// dashboard is a page of Grafana; its uid is the name of its file.
type dashboard struct {
	uid, title string
	panels     []panel
}

// panel is one graph.
type panel struct {
	title, description string
	// unit by its name in Grafana.
	unit    string
	queries []query
}

// query is an expression, and how its series are named.
type query struct{ expr, legend string }

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: dashboards FOLDER")
		os.Exit(2)
	}
	for _, d := range dashboards {
		text, err := json.MarshalIndent(d.grafana(), "", "  ")
		if err == nil {
			err = os.WriteFile(filepath.Join(os.Args[1], d.uid+".json"), append(text, '\n'), 0o644)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "dashboards: writing %s: %v\n", d.uid, err)
			os.Exit(1)
		}
	}
}

// object is one of JSON, with sorted keys when it is written.
type object = map[string]any

// Two panels are beside each other on Grafana's grid of 24 columns.
const panelWidth, panelHeight = 12, 8

func (d dashboard) grafana() object {
	source := object{"type": "prometheus", "uid": "${datasource}"}
	var panels []object
	for i, p := range d.panels {
		var targets []object
		for j, q := range p.queries {
			targets = append(targets, object{"refId": string(rune('A' + j)), "datasource": source, "expr": q.expr,
				"legendFormat": q.legend})
		}
		panels = append(panels, object{
			"id": i + 1, "type": "timeseries", "title": p.title, "description": p.description, "datasource": source,
			"targets":     targets,
			"gridPos":     object{"x": i % 2 * panelWidth, "y": i / 2 * panelHeight, "w": panelWidth, "h": panelHeight},
			"fieldConfig": object{"defaults": object{"unit": p.unit, "min": 0}, "overrides": []object{}},
			"options": object{"legend": object{"displayMode": "list", "placement": "bottom"},
				"tooltip": object{"mode": "multi"}},
		})
	}
	variables := []object{{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}}
	if slices.ContainsFunc(d.panels, panel.ofOneProfile) {
		variables = append(variables, object{
			"name": "profile", "type": "query", "label": "Profile with prices", "datasource": source, "refresh": 2,
			"query": "label_values(berth_nodes_in_use_cost_dollars_per_hour, profile)",
		})
	}
	return object{
		"uid": d.uid, "title": d.title, "tags": []string{"berth"}, "schemaVersion": 39, "version": 1, "editable": true,
		"time": object{"from": "now-6h", "to": "now"}, "refresh": "1m", "timezone": "browser", "panels": panels,
		"templating": object{"list": variables},
	}
}

func (p panel) ofOneProfile() bool {
	return slices.ContainsFunc(p.queries, func(q query) bool { return strings.Contains(q.expr, "$profile") })
}
